//! The suite that every algorithm of every backend is put through, written once. A backend's test
//! file is one line: `crossover_tests::conformance!(one_shot => "host/one_shot");`.
//!
//! Every call has new data, every output is poisoned before, every input after. Results are
//! compared bit for bit with [`reference`](crate::reference).

mod case;
mod ends;
mod results;

pub use case::Case;
pub use ends::*;
pub use results::*;

/// Instantiates the suite: one module of tests for each algorithm.
#[macro_export]
macro_rules! conformance {
    ($($name:ident => $target:literal),+ $(,)?) => {$(
        mod $name {
            $crate::conformance!(@tests $target:
                every_op_dtype_and_reduce_op, sizes_around_every_edge, every_world,
                misaligned_buffers, in_place, counts_per_rank, copies_keep_every_bit,
                order_of_addition, input_is_free_on_return, mixed_calls_with_lagging_ranks,
                several_groups_at_once, two_threads_on_one_group, empty_calls_advance_together,
                different_calls_end_alike_on_all_ranks, nonsense_is_refused_and_harmless,
                counters_and_explain_tell_what_ran, an_abort_ends_every_wait,
                a_dropped_rank_is_named, a_late_rank_is_named
            );
        }
    )+};
    (@tests $target:literal: $($test:ident),+) => {$(
        #[test]
        fn $test() {
            $crate::conformance::$test($target);
        }
    )+};
}
