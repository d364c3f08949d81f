//! What the guarantees of a call cost: an all_reduce of 8 B between two ranks, back to back, with each
//! of them switched off in turn, and with all; and with a new decision for every call. `cargo bench -p crossover-tests --features ablation
//! --bench guarantees`. Two ranks are two threads, each bound to a processor of its own.
//!
//! A call is two thirds waiting for the peer's cache line, so that work which is done meanwhile costs
//! nothing here: that is what counts. Rounds are interleaved; medians.

#![allow(missing_docs)] // a program

use std::hint::black_box;
use std::io::Write;
use std::sync::Barrier;
use std::time::Instant;

use crossover_core::ablation::Guarantee::{Counters, Decision, Fingerprint, Record};
use crossover_core::ablation::{Guarantee, switch_off};
use crossover_core::call::ReduceOp;
use crossover_core::communicator::Communicator;
use crossover_tests::groups::{Plan, run_recorded};

const CALLS: u32 = 20_000;
const ROUNDS: usize = 60;

/// A name, what is switched off, and whether calls take turns, so that each is decided anew.
const CASES: [(&str, &[Guarantee], bool); 7] = [
    ("everything on", &[], false),
    ("decided anew", &[], true),
    ("without decision", &[Decision], false),
    ("without counters", &[Counters], false),
    ("without fingerprint", &[Fingerprint], false),
    ("without record", &[Record], false),
    ("without all four", &[Decision, Counters, Fingerprint, Record], false),
];

fn main() -> std::io::Result<()> {
    let meet = Barrier::new(2);
    let times = run_recorded(2, &Plan::forcing("host/one_shot"), |group| {
        let rank = group.rank();
        bind(rank);
        let mut times = [(); CASES.len()].map(|()| Vec::with_capacity(ROUNDS));
        for round in 0..ROUNDS {
            for (case, times) in CASES.iter().zip(&mut times) {
                meet.wait();
                if rank == 0 {
                    switch_off(case.1);
                }
                meet.wait();
                times.push(per_call(group, (round as f32) + 1.0, case.2));
            }
        }
        times
    });
    let mut out = std::io::stdout();
    let median = |times: &[f64]| {
        let mut times = times.to_vec();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let all = median(&times[0][0]);
    writeln!(out, "all_reduce of 8 B, 2 ranks, back to back: {all:.1} ns a call")?;
    for ((name, ..), times) in CASES.iter().zip(&times[0]).skip(1) {
        let time = median(times);
        writeln!(out, "{name:>20}: {time:.1} ns, {:+.1}", time - all)?;
    }
    Ok(())
}

fn per_call(group: &Communicator, value: f32, by_turns: bool) -> f64 {
    let (input, mut output) = ([value; 2], [0.0; 2]);
    let begin = Instant::now();
    for call in 0..CALLS {
        // 8 B and 4 B by turns are two calls that differ, of one cache line each.
        let count = if by_turns { 1 + call as usize % 2 } else { 2 };
        let (input, output) = (&input[..count], &mut output[..count]);
        group.all_reduce(black_box(input), output, ReduceOp::Sum).expect("two ranks");
        black_box(output);
    }
    assert_eq!(output, [2.0 * value; 2], "the sum of two ranks");
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn bind(rank: u32) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(rank as usize);
    rustix::thread::sched_setaffinity(None, &set).expect("a processor of its own");
}
