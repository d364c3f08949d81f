//! What the emulator claims, shown with kernels made for it: barriers and flags work, conversions
//! round, 16 bytes tear, a hang is told with its place, and the sanitizer sees what x86 hides.

mod common;

use std::time::Duration;

use crossover_kernel_emulation::compile::Make;
use crossover_kernel_emulation::scenario::{Address, Launch, Outcome, Place, Scenario, Verdict};
use half::{bf16, f16};

use common::{bytes_of, image, probe, scratch};

/// `rounds` sums of `world` ranks.
fn sums(world: usize, words: usize, rounds: u32, seed: u64) -> Scenario {
    let mut scenario = Scenario::new(world, seed);
    let flags: Vec<usize> = (0..world).map(|_| scenario.buffer(4 * 8 * 8)).collect();
    let inputs: Vec<usize> = (0..world).map(|_| scenario.buffer(words as u64 * 4)).collect();
    let output: Vec<usize> = (0..world).map(|_| scenario.buffer(words as u64 * 4)).collect();
    let start = |buffer| Place { buffer, offset: 0 };
    for (rank, flags) in flags.iter().enumerate() {
        scenario.load(rank, start(*flags), &[0; 4 * 8 * 8], &[]);
    }
    scenario.meet();
    for round in 1..=rounds {
        let input = |rank: usize, at: usize| round * 1000 + (rank * 31 + at) as u32;
        for rank in 0..world {
            let data: Vec<u32> = (0..words).map(|at| input(rank, at)).collect();
            scenario.load(rank, start(inputs[rank]), &bytes_of(&data), &[]);
            let mut addresses = Vec::new();
            for peer in 0..world {
                addresses.push(Address { at: peer * 8, of: start(flags[peer]) });
                addresses.push(Address { at: 64 + peer * 8, of: start(inputs[peer]) });
            }
            addresses.push(Address { at: 128, of: start(output[rank]) });
            let mut parameter = vec![0; 136];
            parameter.extend(bytes_of(&[words as u32, rank as u32, world as u32, round]));
            scenario.launch(
                rank,
                &Launch {
                    kernel: "probe_sum",
                    blocks: 2,
                    threads: 32,
                    programmatic: false,
                    parameter: &parameter,
                    addresses: &addresses,
                },
            );
            let sum: Vec<u32> =
                (0..words).map(|at| (0..world).map(|peer| 2 * input(peer, at)).sum()).collect();
            scenario.check(rank, start(output[rank]), &bytes_of(&sum));
        }
        // Nobody's input may change before all have read it: this kernel has no barrier at its end.
        scenario.meet();
    }
    scenario
}

fn sanitized(defines: &[&str], scenario: &Scenario) -> Option<Outcome> {
    let program = common::build(Make::SanitizedProgram, &[probe()], defines)?;
    Some(scenario.play_sanitized(&program, &scratch("probe")).expect("the program runs"))
}

#[test]
fn ranks_meet_and_see_what_was_written_before() {
    let Some(image) = image(&[probe()], &[]) else { return };
    for seed in 0..10 {
        for world in [2, 3, 8] {
            let mut scenario = sums(world, 60, 3, seed);
            scenario.delayed = Some((world - 1, Duration::from_micros(300)));
            let outcome = scenario.play(&image);
            assert_eq!(outcome.verdict, Verdict::Done, "{}", outcome.report);
        }
    }
}

#[test]
fn a_missing_block_barrier_gives_wrong_sums() {
    let Some(image) = image(&[probe()], &["PROBE_NO_BARRIER"]) else { return };
    let verdicts: Vec<_> = (0..10).map(|seed| sums(4, 60, 3, seed).play(&image).verdict).collect();
    assert!(verdicts.contains(&Verdict::Wrong), "{verdicts:?}");
}

#[test]
fn the_sanitizer_is_content_with_what_is_ordered() {
    let Some(outcome) = sanitized(&[], &sums(3, 60, 3, 1)) else { return };
    assert_eq!(outcome.verdict, Verdict::Done, "{}", outcome.report);
}

#[test]
fn the_sanitizer_sees_a_relaxed_flag() {
    let Some(outcome) = sanitized(&["PROBE_RELAXED_FLAG"], &sums(3, 60, 3, 1)) else { return };
    assert_eq!(outcome.verdict, Verdict::Race, "{}", outcome.report);
    assert!(outcome.report.contains("probe_sum"), "{}", outcome.report);
}

#[test]
fn the_sanitizer_sees_a_missing_block_barrier() {
    let Some(outcome) = sanitized(&["PROBE_NO_BARRIER"], &sums(3, 60, 3, 1)) else { return };
    assert_eq!(outcome.verdict, Verdict::Race, "{}", outcome.report);
}

#[test]
fn a_hang_is_told_with_block_thread_and_line() {
    let Some(image) = image(&[probe()], &[]) else { return };
    let mut scenario = Scenario::new(1, 1);
    scenario.hang = Duration::from_millis(200);
    let flag = scenario.buffer(8);
    scenario.load(0, Place { buffer: flag, offset: 0 }, &[0; 8], &[]);
    scenario.launch(
        0,
        &Launch {
            kernel: "probe_hang",
            blocks: 1,
            threads: 64,
            programmatic: false,
            parameter: &[0; 8],
            addresses: &[Address { at: 0, of: Place { buffer: flag, offset: 0 } }],
        },
    );
    let outcome = scenario.play(&image);
    assert_eq!(outcome.verdict, Verdict::Hung);
    for told in ["rank 0: probe_hang block 0: thread 5 in the wait of", "probe.cc:", "62 more at"] {
        assert!(outcome.report.contains(told), "{told}: {}", outcome.report);
    }
}

/// The cells after a chain of kernels, some of which start before the one ahead has ended.
fn chain(late: bool, seed: u64) -> Option<Verdict> {
    let image = image(&[probe()], &[])?;
    let mut scenario = Scenario::new(1, seed);
    let cell = scenario.buffer(64 * 4);
    let start = Place { buffer: cell, offset: 0 };
    scenario.load(0, start, &[0; 64 * 4], &[]);
    for step in 0..6 {
        let mut parameter = vec![0; 8];
        parameter.extend(bytes_of(&[late.into(), 1]));
        scenario.launch(
            0,
            &Launch {
                kernel: "probe_step",
                blocks: 1,
                threads: 64,
                programmatic: step > 0,
                parameter: &parameter,
                addresses: &[Address { at: 0, of: start }],
            },
        );
    }
    scenario.check(0, start, &bytes_of(&[6; 64]));
    Some(scenario.play(&image).verdict)
}

#[test]
fn a_kernel_that_starts_early_waits_for_the_one_ahead() {
    for seed in 0..10 {
        let Some(verdict) = chain(false, seed) else { return };
        assert_eq!(verdict, Verdict::Done);
    }
}

#[test]
fn one_that_waits_too_late_reads_what_is_not_there_yet() {
    let verdicts: Vec<_> = (0..10).filter_map(|seed| chain(true, seed)).collect();
    assert!(verdicts.is_empty() || verdicts.contains(&Verdict::Wrong), "{verdicts:?}");
}

#[test]
fn sixteen_bytes_tear_between_words_and_lines_between_halves() {
    let Some(image) = image(&[probe()], &[]) else { return };
    let tear = |expected: &[u32], words: u64| {
        let mut scenario = Scenario::new(1, 7);
        let places: Vec<Place> =
            [16, 16, 16].map(|bytes| Place { buffer: scenario.buffer(bytes), offset: 0 }).into();
        places.iter().for_each(|place| scenario.load(0, *place, &[0; 16], &[]));
        let addresses: Vec<_> =
            (places.iter().enumerate()).map(|(at, of)| Address { at: at * 8, of: *of }).collect();
        scenario.launch(
            0,
            &Launch {
                kernel: "probe_tear",
                blocks: 1,
                threads: 64,
                programmatic: false,
                parameter: &[0; 24],
                addresses: &addresses,
            },
        );
        let torn = Place { offset: words, ..places[2] };
        scenario.check(0, torn, &bytes_of(expected));
        scenario.play(&image).verdict
    };
    // Packs and lines were seen torn; halves of lines never.
    assert_eq!(tear(&[0], 0), Verdict::Wrong);
    assert_eq!(tear(&[0], 4), Verdict::Wrong);
    assert_eq!(tear(&[0], 8), Verdict::Done);
}

#[test]
fn conversions_round_as_the_reference_does() {
    let Some(image) = image(&[probe()], &[]) else { return };
    let mut numbers: Vec<u32> = Vec::new();
    // Around every half and bfloat, and half-way to the next.
    for bits in 0..=u16::MAX {
        for near in [f16::from_bits(bits).to_f32().to_bits(), u32::from(bits) << 16] {
            for offset in [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001] {
                numbers.push(near.wrapping_add(offset));
                numbers.push(near.wrapping_sub(offset));
            }
        }
    }
    numbers.retain(|bits| !f32::from_bits(*bits).is_nan());
    let count = numbers.len() as u64;
    let mut scenario = Scenario::new(1, 1);
    let places: Vec<Place> = [count * 4, count * 2, count * 2, 65536 * 8]
        .map(|bytes| Place { buffer: scenario.buffer(bytes), offset: 0 })
        .into();
    scenario.load(0, places[0], &bytes_of(&numbers), &[]);
    let addresses: Vec<_> =
        (places.iter().enumerate()).map(|(at, of)| Address { at: at * 8, of: *of }).collect();
    let mut parameter = vec![0; 32];
    parameter.extend(count.to_le_bytes());
    scenario.launch(
        0,
        &Launch {
            kernel: "probe_convert",
            blocks: 2,
            threads: 256,
            programmatic: false,
            parameter: &parameter,
            addresses: &addresses,
        },
    );
    let narrowed = |narrow: &dyn Fn(f32) -> u16| -> Vec<u8> {
        numbers.iter().flat_map(|bits| narrow(f32::from_bits(*bits)).to_le_bytes()).collect()
    };
    scenario.check(0, places[1], &narrowed(&|value| f16::from_f32(value).to_bits()));
    scenario.check(0, places[2], &narrowed(&|value| bf16::from_f32(value).to_bits()));
    // NaN may be any NaN: infinities are the last that are compared, of either sign.
    for (from, widen) in [
        (0u32, &(|bits| f16::from_bits(bits).to_f32()) as &dyn Fn(u16) -> f32),
        (65536, &|bits| bf16::from_bits(bits).to_f32()),
    ] {
        for sign in [0u16, 0x8000] {
            let last = if from == 0 { 0x7c00 } else { 0x7f80 };
            let wide: Vec<u32> = (sign..=sign | last).map(|bits| widen(bits).to_bits()).collect();
            let offset = u64::from(from + u32::from(sign)) * 4;
            scenario.check(0, Place { offset, ..places[3] }, &bytes_of(&wide));
        }
    }
    let outcome = scenario.play(&image);
    assert_eq!(outcome.verdict, Verdict::Done, "{}", outcome.report);
}
