//! The rendezvous under shuttle: more ranks and steps than loom can exhaust, in thousands of
//! random schedules. Shuttle's memory is sequentially consistent: orders are loom's business.

use std::cell::UnsafeCell;
use std::panic::catch_unwind;

use crossover_backend_host::protocol::{Board, Met, Patience, Step, Steps, Word};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};

const TAG: u32 = 7;

struct Flag(AtomicU64);

impl Word for Flag {
    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    fn compare_exchange(&self, current: u64, new: u64) -> bool {
        self.0.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

struct Memory {
    words: Vec<[Flag; 2]>,
    slots: Vec<[UnsafeCell<u64>; 2]>,
}

// SAFETY: shuttle runs one thread at a time.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

impl Board for Memory {
    type Word = Flag;

    fn arrival(&self, rank: u32, parity: usize) -> &Flag {
        &self.words[rank as usize][parity]
    }
}

struct Yield;

impl Patience for Yield {
    type Error = std::convert::Infallible;

    fn pause(&mut self, _: Step) -> Result<(), Self::Error> {
        shuttle::thread::yield_now();
        Ok(())
    }
}

/// Runs ranks that each write, meet, and read everyone, with `slots` slots.
fn run(ranks: u32, steps: u64, slots: usize) {
    let once = move || {
        let memory = Arc::new(Memory {
            words: (0..ranks).map(|_| [0, 1].map(|_| Flag(AtomicU64::new(0)))).collect(),
            slots: (0..ranks).map(|_| [0, 1].map(|_| UnsafeCell::new(0))).collect(),
        });
        let threads: Vec<_> = (0..ranks)
            .map(|me| {
                let memory = Arc::clone(&memory);
                shuttle::thread::spawn(move || rank(me, (ranks, steps, slots), &memory))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    };
    shuttle::check_random(once, 5000);
}

fn rank(me: u32, (ranks, count, slots): (u32, u64, usize), memory: &Memory) {
    let mut steps = Steps::new(me, ranks);
    for number in 1..=count {
        let step = steps.begin(TAG);
        let slot = step.parity() % slots;
        // SAFETY: one thread runs at a time.
        unsafe { *memory.slots[me as usize][slot].get() = number * 100 + u64::from(me) };
        steps.publish(step, memory);
        let Ok(met) = steps.meet(step, memory, &mut Yield);
        assert_eq!(met, Met::Alike);
        for peer in 0..ranks {
            // A reader may be interrupted before each of its reads.
            shuttle::thread::yield_now();
            // SAFETY: one thread runs at a time.
            let read = unsafe { *memory.slots[peer as usize][slot].get() };
            assert_eq!(read, number * 100 + u64::from(peer), "step {number}, rank {me}");
        }
    }
}

#[test]
fn three_ranks() {
    run(3, 7, 2);
}

#[test]
fn four_ranks() {
    run(4, 5, 2);
}

#[test]
fn a_single_buffer_is_found() {
    assert!(catch_unwind(|| run(3, 7, 1)).is_err());
}
