//! Backend `mpi` over a real MPI library, its ranks processes that the library's launcher started, on
//! what their reports say are two nodes.

/// The suite's tests, each with as many ranks as its largest group has.
macro_rules! suite {
    ($($module:ident => $target:literal),+: $tests:tt) => {
        $(suite!(@module $module $target $tests);)+
    };
    (@module $module:ident $target:literal { $($test:ident: $ranks:literal,)+ }) => {
        mod $module {
            $(#[test]
            fn $test() {
                let name = concat!(stringify!($module), "::", stringify!($test));
                let suite = || crossover_tests::conformance::$test($target);
                crossover_tests::mpi::ranks(name, $ranks, suite);
            })+
        }
    };
}

suite! {
    one_shot => "mpi/one_shot",
    two_shot => "mpi/two_shot": {
        every_op_dtype_and_reduce_op: 3,
        sizes_around_every_edge: 2,
        every_world: 16,
        misaligned_buffers: 3,
        in_place: 4,
        counts_per_rank: 3,
        copies_keep_every_bit: 2,
        order_of_addition: 8,
        input_is_free_on_return: 3,
        mixed_calls_with_lagging_ranks: 4,
        two_threads_on_one_group: 2,
        empty_calls_advance_together: 3,
        different_calls_end_alike_on_all_ranks: 4,
        nonsense_is_refused_and_harmless: 2,
        counters_and_explain_tell_what_ran: 2,
        an_abort_ends_every_wait: 3,
        a_dropped_rank_is_named: 3,
    }
}
