//! The kernels that measure what a device can: they do what their figures are about.

use std::mem::offset_of;

use crossover_kernel_abi::{Common, CopyArgs, EmptyArgs, TripArgs};
use crossover_kernel_emulation::compile::{Make, common_kernels};
use crossover_kernel_emulation::scenario::{Address, Launch, Outcome, Place, Scenario, Verdict};

use crate::common::{build, image, scratch};
use crate::group::{Group, Setup, start};

/// Ping-pong twice, the second time with other values; a rank may be late.
fn trips(seed: u64) -> Scenario {
    const ROUNDS: u64 = 20;
    let mut group = Group::new(Setup::new(2, seed));
    let took = [0, 1].map(|_| group.scenario.buffer(8));
    for (rank, took) in took.into_iter().enumerate() {
        group.scenario.load(rank, start(took), &u64::MAX.to_le_bytes(), &[]);
        for turn in 0..2 {
            let (common, mut addresses) = group.common(rank, 0, false);
            let first = 1 + turn * ROUNDS;
            let args = TripArgs { common, rounds: ROUNDS, first, ..TripArgs::ZERO };
            addresses.push(Address { at: offset_of!(TripArgs, took), of: start(took) });
            group.scenario.launch(
                rank,
                &Launch {
                    kernel: "floor_trip",
                    blocks: 2,
                    threads: 8,
                    programmatic: turn == 1,
                    parameter: args.as_bytes(),
                    addresses: &addresses,
                },
            );
        }
    }
    // A word is looked at when its writer is done.
    group.scenario.meet();
    for (rank, took) in took.into_iter().enumerate() {
        // The first word of an arena is the one that goes to and fro.
        let arena = offset_of!(Common, arenas) + rank * 8;
        let (_, addresses) = group.common(rank, 0, false);
        let own = addresses.iter().find(|a| a.at == arena).expect("its own arena").of;
        group.scenario.check(rank, own, &(2 * ROUNDS).to_le_bytes());
        // Less than a minute: something was written.
        let high = Place { buffer: took, offset: 5 };
        group.scenario.check(rank, high, &[0; 3]);
    }
    group.finish()
}

/// Two copies in a row, each of what the one ahead has written, of odd lengths at odd places.
fn copies(seed: u64) -> Scenario {
    let mut scenario = Scenario::new(1, seed);
    let [from, through, to] = [0; 3].map(|_| scenario.buffer(4096));
    let bytes = 3000 + seed % 17;
    let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + seed) as u8).collect();
    let at = |buffer, offset| Place { buffer, offset };
    scenario.load(0, at(from, seed % 16), &data, &[]);
    let empty = EmptyArgs { early: 1 };
    scenario.launch(
        0,
        &Launch {
            kernel: "floor_empty",
            blocks: 1,
            threads: 32,
            programmatic: true,
            parameter: empty.as_bytes(),
            addresses: &[],
        },
    );
    let ways = [(at(from, seed % 16), at(through, 16)), (at(through, 16), at(to, seed % 3))];
    for (from, to) in ways {
        let args = CopyArgs { bytes, early: 1, ..CopyArgs::ZERO };
        scenario.launch(
            0,
            &Launch {
                kernel: "floor_copy",
                blocks: 2,
                threads: 24,
                programmatic: true,
                parameter: args.as_bytes(),
                addresses: &[
                    Address { at: offset_of!(CopyArgs, from), of: from },
                    Address { at: offset_of!(CopyArgs, to), of: to },
                ],
            },
        );
    }
    scenario.check(0, at(to, seed % 3), &data);
    // Behind it nobody has written.
    scenario.check(0, at(to, seed % 3 + bytes), &[0xa5; 16]);
    scenario
}

#[track_caller]
fn done(outcome: &Outcome, seed: u64) {
    assert_eq!(outcome.verdict, Verdict::Done, "seed {seed}: {}", outcome.report);
}

#[test]
fn a_word_goes_to_and_fro_and_bytes_are_copied() {
    let kernels = common_kernels().expect("the sources can be listed");
    let Some(image) = image(&kernels, &[]) else { return };
    for seed in 0..20 {
        done(&trips(seed).play(&image), seed);
        done(&copies(seed).play(&image), seed);
    }
}

#[test]
fn floors_do_not_race() {
    let kernels = common_kernels().expect("the sources can be listed");
    let Some(program) = build(Make::SanitizedProgram, &kernels, &[]) else { return };
    for seed in 0..3 {
        for scenario in [trips(seed), copies(seed)] {
            let outcome = scenario.play_sanitized(&program, &scratch("floor"));
            done(&outcome.expect("the program runs"), seed);
        }
    }
}
