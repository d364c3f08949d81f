//! The suite for algorithms whose tensors are on devices, written once. It runs on the device that
//! the environment names, `CROSSOVER_TEST_DEVICE=cuda:0`, and else on an emulated one, with fewer
//! and smaller calls. Ranks share the device, unless it has no number, as in `cuda`: then each has
//! its own. On a real one they are processes, which run one test
//! after the other; on the emulated one threads, and in some tests processes.
//!
//! Every call has new data, every output is poisoned before, every input behind the call in stream
//! order. Results are compared bit for bit with [`reference`](crate::reference).

mod case;
mod children;
mod consumer;
mod ends;
mod graphs;
mod image;
mod rank;
mod results;
mod room;
mod stand;
mod target;
mod whole;

pub use case::{Case, Prepared};
pub use children::{Body, all_in_processes, as_processes, as_threads, as_threads_alone};
pub use consumer::*;
pub use ends::*;
pub use graphs::*;
pub use rank::Rank;
pub use results::*;
pub use room::Room;
pub use stand::Stand;
pub use target::Target;
pub use whole::*;

/// Instantiates the suite: one module of tests for each algorithm. A target that reads from rows
/// of addresses is one that [`Target::reads_rows`].
#[macro_export]
macro_rules! device_conformance {
    ($($name:ident => $target:literal),+ $(,)?) => {$(
        mod $name {
            $crate::device_suite!($target:
                every_dtype_and_reduce_op, sizes_around_every_room, every_world,
                misaligned_tensors, in_place, counts_per_rank, every_bit, calls_back_to_back,
                lagging_ranks, a_consumer_reads_at_once, two_streams_by_turns, streams_that_go, several_groups_at_once,
                empty_calls_advance_together, different_calls_end_alike, other_graphs_end_alike,
                a_different_call_far_behind_is_seen, an_abort_ends_every_wait,
                a_dropped_rank_is_named,
                a_rank_that_never_comes_is_named, graphs_of_odd_numbers_of_calls,
                graphs_of_any_memory, inputs_that_one_rank_cannot_share, graphs_of_uneven_parts,
                two_graphs_by_turns, a_graph_that_was_not_committed,
                unequal_captures_are_refused, a_capture_that_failed_is_forgotten
            );
        }
    )+};
}

/// Tests of one target: one by one where it is emulated, with threads for ranks; on a real device
/// all of them in the same processes.
#[macro_export]
macro_rules! device_suite {
    ($target:literal: $($test:ident),+ $(,)?) => {
        $crate::device_tests!($target, as_threads: $($test),+);

        #[test]
        fn in_processes() {
            let name = concat!(module_path!(), "::in_processes");
            let bodies = [$((stringify!($test), $crate::device::$test as $crate::device::Body)),+];
            $crate::device::all_in_processes(name, $target, &bodies);
        }
    };
}

/// Tests of one target, each by itself.
#[macro_export]
macro_rules! device_tests {
    ($target:literal, $how:ident: $($test:ident),+ $(,)?) => {$(
        #[test]
        fn $test() {
            let name = concat!(module_path!(), "::", stringify!($test));
            $crate::device::$how(name, $target, $crate::device::$test);
        }
    )+};
}
