//! Kernels from which something was taken away are found out: by a wrong value, a wait that ends with its
//! budget, or the sanitizer. What is not found out here is not tested.

use std::path::PathBuf;
use std::time::Duration;

use crossover_core::call::Op;
use crossover_kernel_emulation::compile::{Make, common_kernels};
use crossover_kernel_emulation::scenario::{Scenario, Verdict};

use crate::call::Way;
use crate::common::{build, image, scratch};
use crate::group::Setup;
use crate::suite::{scenario, stale_lines};

/// The source of an algorithm, such as `copy/pull`; without a collective it is one of all_reduce's.
fn sources(name: &str) -> Vec<PathBuf> {
    let kernels = common_kernels().expect("the sources can be listed");
    let file = match name.contains('/') {
        true => format!("{name}.cc"),
        false => format!("all_reduce/{name}.cc"),
    };
    kernels.into_iter().filter(|path| path.ends_with(&file)).collect()
}

/// A wait that never ends must not take the time that an honest one may.
fn setup(world: usize, seed: u64) -> Setup {
    Setup { budget: Duration::from_secs(1), ..Setup::new(world, seed) }
}

/// Some of the schedules must show it.
#[track_caller]
fn is_caught(define: &str, name: &str, make: impl Fn(u64) -> Scenario) {
    let Some(image) = image(&sources(name), &[define]) else { return };
    let caught = (0..20).any(|seed| {
        let outcome = make(seed).play(&image);
        assert_ne!(outcome.verdict, Verdict::Malformed, "{}", outcome.report);
        outcome.verdict != Verdict::Done
    });
    assert!(caught, "{define} was not found out");
}

#[test]
fn a_barrier_that_does_not_wait_for_the_block() {
    is_caught("SABOTAGE_NO_BARRIER", "two_shot_pull", |seed| {
        scenario(setup(4, seed), Some((Op::AllReduce, Way::TwoShotPull)))
    });
}

#[test]
fn a_flag_that_orders_nothing() {
    let Some(program) =
        build(Make::SanitizedProgram, &sources("one_shot_pull"), &["SABOTAGE_RELAXED_FLAG"])
    else {
        return;
    };
    let scenario = scenario(setup(2, 1), Some((Op::AllReduce, Way::OneShotPull)));
    let outcome = scenario.play_sanitized(&program, &scratch("sabotage"));
    let outcome = outcome.expect("the program runs");
    assert_eq!(outcome.verdict, Verdict::Race, "{}", outcome.report);
}

#[test]
fn a_place_that_is_not_cleared() {
    is_caught("SABOTAGE_SKIP_CLEAR", "lamport", |seed| {
        scenario(setup(4, seed), Some((Op::AllReduce, Way::Lamport)))
    });
}

#[test]
fn one_slot_instead_of_three() {
    is_caught("SABOTAGE_ONE_SLOT", "one_shot_push", |seed| {
        scenario(setup(4, seed), Some((Op::AllReduce, Way::OneShotPush)))
    });
}

#[test]
fn one_stage_instead_of_two() {
    is_caught("SABOTAGE_ONE_SLOT", "one_shot_pull", |seed| {
        scenario(setup(4, seed), Some((Op::AllReduce, Way::OneShotPull)))
    });
}

#[test]
fn one_stage_for_all_pieces() {
    is_caught("SABOTAGE_ONE_SLOT", "copy/pull", |seed| {
        scenario(setup(4, seed), Some((Op::AllGather, Way::Pull)))
    });
}

/// Inputs that are read where they are may be overwritten too early, outputs read before they are
/// written.
#[test]
fn no_barrier_at_the_end() {
    is_caught("SABOTAGE_NO_END_BARRIER", "two_shot_pull", |seed| {
        scenario(setup(4, seed), Some((Op::AllReduce, Way::TwoShotPullRows)))
    });
    for (op, name) in [
        (Op::AllGather, "copy/pull"),
        (Op::Broadcast, "copy/pull"),
        (Op::AllToAll, "copy/pull"),
        (Op::ReduceScatter, "reduce_scatter/pull"),
    ] {
        is_caught("SABOTAGE_NO_END_BARRIER", name, |seed| {
            scenario(setup(4, seed), Some((op, Way::PullRow)))
        });
    }
}

#[test]
fn a_state_that_is_advanced_before_all_threads_have_read_it() {
    is_caught("SABOTAGE_ADVANCE_EARLY", "lamport", |seed| {
        scenario(setup(2, seed), Some((Op::AllReduce, Way::Lamport)))
    });
}

#[test]
fn states_of_blocks_that_a_call_has_not() {
    for (name, way) in [("one_shot_push", Way::OneShotPush), ("lamport", Way::Lamport)] {
        is_caught("SABOTAGE_OWN_STATE_ALONE", name, |seed| {
            scenario(setup(2, seed), Some((Op::AllReduce, way)))
        });
    }
}

#[test]
fn flags_of_long_ago_that_stay() {
    is_caught("SABOTAGE_NO_SCRUB", "one_shot_push", |seed| {
        stale_lines(setup(3, seed), Way::OneShotPush, None)
    });
}
