//! What the machine allows: the terms from which the report makes the least time of each cell.
//!
//! Run with as many ranks as there are processors, or fewer. All ranks work at once, since they do in a
//! collective. Each term is the time of the quickest rank, so that what is made of it is no more than
//! the least:
//!
//! - `alpha`: a cache line's way to another core (half a ping-pong);
//! - `switch`: one processor passed on between two that yield;
//! - `clock`: what reading the clock twice adds to a call that is timed;
//! - `read`: bytes that another core has just written, brought into registers;
//! - `write`: bytes written from a block that stays in the cache;
//! - `add`: bytes of the sum of two own buffers;
//! - `copy`: bytes of own memory copied to own memory. No cell's least time has it: to compare with.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Instant;

use anyhow::{Result, ensure};
use rustix::thread::sched_yield;
use serde_json::json;

use crate::bare::{Isa, add};
use crate::call::Dtype;
use crate::memory::Memory;
use crate::page::{SHARE, Seat};

/// Round trips in a batch: short, so that few batches are interrupted.
const TRIPS: u64 = 50;
const BATCHES: u64 = 501;
/// Below it a rate is a latency.
const LEAST: usize = 1 << 10;
/// Stays in any first-level cache beside what is written.
const BLOCK: usize = 16 << 10;

/// Measures each term, at each of the sizes where it depends on one. Collective.
pub(crate) fn measure(
    seat: &mut Seat<'_>,
    sizes: &[usize],
    mut print: impl FnMut(serde_json::Value),
) -> Result<()> {
    ensure!(seat.world >= 2, "the floor of one rank is nothing: start two");
    let clock = clock();
    let terms = [("alpha", alpha(seat, BATCHES)), ("switch", switch()), ("clock", clock)];
    for (term, nanoseconds) in terms {
        let nanoseconds = least(seat, nanoseconds);
        print(json!({ "floor": term, "ns": (nanoseconds * 10.0).round() / 10.0 }));
    }
    for &bytes in sizes.iter().filter(|bytes| **bytes >= LEAST && **bytes <= SHARE) {
        for (term, nanoseconds) in rates(seat, bytes) {
            let nanoseconds = least(seat, nanoseconds - clock);
            let rate = bytes as f64 / nanoseconds;
            let rate = (rate * 100.0).round() / 100.0;
            print(json!({ "floor": term, "bytes": bytes, "gb_s": rate }));
        }
    }
    Ok(())
}

fn least(seat: &mut Seat<'_>, nanoseconds: f64) -> f64 {
    -seat.max(-nanoseconds)
}

/// A cache line's way now, in nanoseconds; `None` where ranks take turns, and lines wait for processors.
pub(crate) fn line(seat: &mut Seat<'_>) -> Option<f64> {
    const FEW: u64 = 9;
    (!seat.wait.crowded).then(|| {
        let nanoseconds = alpha(seat, FEW);
        least(seat, nanoseconds).round()
    })
}

/// Between the ranks 0 and 1. The others have nothing to say.
fn alpha(seat: &mut Seat<'_>, batches: u64) -> f64 {
    let [ping, pong] = seat.page.lines();
    let batches = (0..batches).map(|batch| {
        seat.barrier();
        let start = Instant::now();
        for trip in batch * TRIPS + 1..=(batch + 1) * TRIPS {
            match seat.rank {
                0 => {
                    ping.store(trip, Release);
                    while pong.load(Acquire) != trip {}
                }
                1 => {
                    while ping.load(Acquire) != trip {}
                    pong.store(trip, Release);
                }
                _ => return f64::MAX, // the least of the ranks counts
            }
        }
        nanoseconds(start) / (2 * TRIPS) as f64
    });
    middle(batches.collect())
}

/// Two threads of one processor that pass it to each other.
fn switch() -> f64 {
    let turn = AtomicU64::new(0);
    let run = |me: u64| {
        let batches = (0..BATCHES).map(|batch| {
            let start = Instant::now();
            for trip in batch * TRIPS..(batch + 1) * TRIPS {
                while turn.load(Acquire) != 2 * trip + me {
                    sched_yield();
                }
                turn.store(2 * trip + me + 1, Release);
            }
            nanoseconds(start) / (2 * TRIPS) as f64
        });
        middle(batches.collect())
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(1)); // bound as this thread is
        run(0)
    })
}

fn clock() -> f64 {
    middle((0..1001).map(|_| nanoseconds(Instant::now())).collect())
}

/// The median time of each term that depends on the size.
fn rates(seat: &mut Seat<'_>, bytes: usize) -> [(&'static str, f64); 4] {
    let (mut a, mut b) = (Memory::new(bytes, 0), Memory::new(bytes, 1));
    let mut to = Memory::new(bytes, 2);
    let mut block = Memory::new(BLOCK, 0);
    let isa = Isa::detect();
    let own = seat.page.share(seat.rank);
    let other = seat.page.share((seat.rank + 1) % seat.world).cast_const();

    let mut number = 0;
    let read = median(seat, bytes, |timed| match timed {
        false => {
            number += 1;
            // SAFETY: this rank's share, which is as long; its peer reads only after the barrier.
            unsafe { own.write_bytes(number, bytes) };
        }
        // SAFETY: the other's share, between two barriers.
        true => drop(black_box(unsafe { sum(isa, other, bytes) })),
    });
    let write = median(seat, bytes, |timed| {
        if timed {
            for chunk in to.bytes().chunks_mut(BLOCK) {
                chunk.copy_from_slice(&block.bytes()[..chunk.len()]);
            }
            black_box(to.start());
        }
    });
    let copy = median(seat, bytes, |timed| match timed {
        false => a.bytes().fill(2),
        true => {
            to.bytes().copy_from_slice(a.bytes());
            black_box(to.start());
        }
    });
    let add = median(seat, bytes, |timed| match timed {
        false => {
            a.bytes().fill(0);
            b.bytes().fill(0);
        }
        true => {
            let to = black_box(to.start());
            // SAFETY: three buffers of so many bytes.
            unsafe { add(isa, Dtype::F32, a.start(), b.start(), to, None, bytes) };
        }
    });
    [("read", read), ("write", write), ("copy", copy), ("add", add)]
}

/// Of the timed halves of so many steps; every rank is through with one half before the next.
fn median(seat: &mut Seat<'_>, bytes: usize, mut step: impl FnMut(bool)) -> f64 {
    /// Bytes of all steps together.
    const TOTAL: usize = 64 << 20;
    let times = (0..(TOTAL / bytes).clamp(7, 1001)).map(|_| {
        step(false);
        seat.barrier();
        let start = Instant::now();
        step(true);
        let time = nanoseconds(start);
        seat.barrier();
        time
    });
    middle(times.collect())
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Loads every byte.
///
/// # Safety
///
/// `bytes` readable bytes, a multiple of 1 KiB.
unsafe fn sum(isa: Isa, from: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller's promise; the instructions are there.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => sum_avx512(from, bytes),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => sum_avx2(from, bytes),
            Isa::Base => sum_any(from, bytes),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn sum_avx512(from: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { sum_any(from, bytes) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn sum_avx2(from: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { sum_any(from, bytes) }
}

#[inline(always)]
unsafe fn sum_any(from: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller's promise; a share starts a page.
    let words = unsafe { std::slice::from_raw_parts(from.cast::<u64>(), bytes / 8) };
    words.iter().fold(0, |sum, word| sum ^ word)
}

fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9
}
