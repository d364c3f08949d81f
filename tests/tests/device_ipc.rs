//! Every algorithm of backend `ipc`, on the device that `CROSSOVER_TEST_DEVICE` names.

use crossover_tests::device::{
    Body, Stand, Target, a_killed_rank_is_named, a_stopped_rank_is_named, all_in_processes,
    as_threads, as_threads_alone, groups_come_and_go_between,
};
use crossover_tests::{device_conformance, device_tests};

device_conformance! {
    one_shot_push => "ipc/one_shot_push",
    one_shot_pull => "ipc/one_shot_pull",
    two_shot_push => "ipc/two_shot_push",
    two_shot_pull => "ipc/two_shot_pull",
    lamport => "ipc/lamport",
    all_gather => "ipc/all_gather",
    all_gather_pulled => "ipc/all_gather pulled",
    lamport_all_gather => "ipc/lamport_all_gather",
    reduce_scatter => "ipc/reduce_scatter",
    reduce_scatter_pulled => "ipc/reduce_scatter pulled",
    broadcast => "ipc/broadcast",
    broadcast_pulled => "ipc/broadcast pulled",
    all_to_all => "ipc/all_to_all",
    all_to_all_pulled => "ipc/all_to_all pulled",
}

mod whole {
    use super::*;

    /// Bytes of input at which the next algorithm takes over.
    const TURNS: [(&str, u64); 10] = [
        ("ipc/lamport", 64),
        ("ipc/one_shot_push", 512),
        ("ipc/two_shot_push", 2048),
        ("ipc/one_shot_pull", 5000),
        ("ipc/two_shot_pull", 40_000),
        ("ipc/lamport_all_gather", 256),
        ("ipc/all_gather", 8192),
        ("ipc/reduce_scatter", 8192),
        ("ipc/broadcast", 8192),
        ("ipc/all_to_all", 8192),
    ];

    fn algorithms_by_turns(stand: &Stand, _: &Target) {
        let targets = TURNS.map(|(name, high)| (Target::parse(name), high));
        crossover_tests::device::algorithms_by_turns(stand, &targets);
    }

    #[test]
    fn threads_take_turns() {
        let name = concat!(module_path!(), "::threads_take_turns");
        as_threads(name, "ipc/one_shot_push", algorithms_by_turns);
    }

    #[test]
    fn groups_come_and_go() {
        as_threads_alone("ipc/one_shot_push", |stand, target| {
            crossover_tests::device::groups_come_and_go(stand, target, 200);
        });
    }

    #[test]
    fn in_processes() {
        let name = concat!(module_path!(), "::in_processes");
        let bodies = [
            ("algorithms_by_turns", algorithms_by_turns as Body),
            ("groups_come_and_go_between", groups_come_and_go_between),
            ("a_stopped_rank_is_named", a_stopped_rank_is_named),
            ("a_killed_rank_is_named", a_killed_rank_is_named),
        ];
        all_in_processes(name, "ipc/one_shot_push", &bodies);
    }
}

/// Ranks as processes, which map each other's memory.
mod processes {
    use super::*;

    mod one_shot_push {
        use super::*;
        device_tests!("ipc/one_shot_push", as_processes: calls_back_to_back, lagging_ranks,
            a_rank_that_never_comes_is_named, a_dropped_rank_is_named, a_stopped_rank_is_named,
            a_killed_rank_is_named, groups_come_and_go_between);
    }
    mod one_shot_pull {
        use super::*;
        device_tests!("ipc/one_shot_pull", as_processes: calls_back_to_back,
            graphs_of_odd_numbers_of_calls, graphs_of_any_memory, two_graphs_by_turns);
    }
    mod two_shot_push {
        use super::*;
        device_tests!("ipc/two_shot_push", as_processes: calls_back_to_back, every_bit);
    }
    mod two_shot_pull {
        use super::*;
        device_tests!("ipc/two_shot_pull", as_processes: calls_back_to_back,
            graphs_of_odd_numbers_of_calls);
    }
    mod lamport {
        use super::*;
        device_tests!("ipc/lamport", as_processes: calls_back_to_back, lagging_ranks);
    }
    mod all_gather {
        use super::*;
        device_tests!("ipc/all_gather", as_processes: calls_back_to_back, every_bit);
    }
    mod all_gather_pulled {
        use super::*;
        device_tests!("ipc/all_gather pulled", as_processes: graphs_of_odd_numbers_of_calls,
            graphs_of_any_memory, inputs_that_one_rank_cannot_share, graphs_of_uneven_parts);
    }
    mod reduce_scatter {
        use super::*;
        device_tests!("ipc/reduce_scatter", as_processes: calls_back_to_back, in_place);
    }
    mod reduce_scatter_pulled {
        use super::*;
        device_tests!("ipc/reduce_scatter pulled", as_processes: graphs_of_odd_numbers_of_calls,
            graphs_of_uneven_parts);
    }
    mod broadcast {
        use super::*;
        device_tests!("ipc/broadcast", as_processes: calls_back_to_back, different_calls_end_alike);
    }
    mod all_to_all {
        use super::*;
        device_tests!("ipc/all_to_all", as_processes: calls_back_to_back, an_abort_ends_every_wait);
    }
}
