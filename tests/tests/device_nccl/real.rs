//! The suite on a real device and through a real library: the one that the loader finds, or the file
//! that `CROSSOVER_TEST_NCCL` names. Where ranks share the device NCCL wants two variables, which
//! `run.sh` of `cargo xtask bundle` sets.

use crossover_tests::device::{Body, all_in_processes};

macro_rules! suites {
    ($($name:ident => $target:literal: $($test:ident),+;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn in_processes() {
                let name = concat!(module_path!(), "::in_processes");
                let bodies = [$((stringify!($test), crate::suite::bodies::$test as Body)),+];
                all_in_processes(name, $target, &bodies);
            }
        }
    )+};
}

// What cannot hold of NCCL's results is left out where they are compared: `suite::is_exact`.
suites! {
    nccl => "nccl":
        every_stated_dtype_and_reduce_op, a_large_exchange_in_place, sizes_around_every_room,
        every_world, misaligned_tensors, misaligned_reductions, in_place, counts_per_rank,
        calls_back_to_back, lagging_ranks, two_streams_by_turns, streams_that_go, empty_calls_advance_together,
        different_calls_end_alike, other_graphs_end_alike, a_different_call_far_behind_is_seen, an_abort_ends_every_wait,
        a_dropped_rank_is_named, a_rank_that_never_comes_is_named,
        graphs_of_odd_numbers_of_calls, graphs_of_any_memory, two_graphs_by_turns,
        unequal_captures_are_refused, a_capture_that_failed_is_forgotten,
        groups_come_and_go_between, a_stopped_rank_is_named, a_killed_rank_is_named;
    integers => "nccl/integers": every_stated_dtype_and_reduce_op, counts_per_rank, in_place;
    min_max => "nccl/min_max": every_stated_dtype_and_reduce_op;
    pinned => "nccl/pinned":
        every_stated_dtype_and_reduce_op, counts_per_rank, in_place, calls_back_to_back,
        graphs_of_odd_numbers_of_calls;
    symmetric => "nccl/symmetric":
        every_stated_dtype_and_reduce_op, sizes_around_every_room, every_world,
        misaligned_tensors, in_place, counts_per_rank, calls_back_to_back, lagging_ranks,
        two_streams_by_turns, streams_that_go, different_calls_end_alike,
        graphs_of_odd_numbers_of_calls, two_graphs_by_turns;
}
