//! Which groups have the backend, and why others do not.

use crossover_core::call::Op;
use crossover_core::facts::Caps;

use crate::nodes::{FOUR, of, refusal, run};
use crate::stage::{Library, tests_apart, willing};

const CANNOT: &str = "`hierarchical` was asked for by the test and cannot be had: ";
const SETUP: &str = "setup: wants set-up on every rank, got ";

tests_apart! {
    fn a_group_on_one_node_has_nothing_across(stand) {
        let library = Library::build(stand, &[]);
        let why = refusal(stand, |_| of(stand, &library, &[0, 0, 0]));
        let words = "topology: wants multi_node, got nvlink_full";
        assert_eq!(why, format!("{CANNOT}{words}"));
    }

    fn nodes_of_unequal_size_are_refused_with_their_sizes(stand) {
        let library = Library::build(stand, &[]);
        let why = refusal(stand, |_| of(stand, &library, &[0, 1, 0, 1, 1]));
        let words = "rank 0 could not divide the group by nodes: the node of rank 0 has 2 and the \
                     node of rank 1 has 3: nodes must have equally many";
        assert_eq!(why, format!("{CANNOT}{SETUP}{words}"));
        let why = refusal(stand, |_| of(stand, &library, &[0, 1]));
        assert!(why.ends_with("every node has one rank: nothing is inside"), "{why}");
    }

    fn a_library_that_is_not_there_is_told_with_the_place(stand) {
        let library = Library::build(stand, &[]);
        let nowhere = "/nowhere/libnccl.so.2";
        let why = refusal(stand, |_| of(stand, &library, FOUR).set("nccl.library", nowhere));
        let words = "rank 0 could not form a group across nodes: of ranks 0 and 1, numbered from 0: \
                     `nccl` was asked for by backend `hierarchical` and cannot be had: ";
        assert!(why.starts_with(&format!("{CANNOT}{SETUP}{words}")), "{why}");
        assert!(why.contains(nowhere), "{why}");
    }

    fn what_one_rank_of_one_node_cannot_do_no_rank_has(stand) {
        let library = Library::build(stand, &[]);
        let why = refusal(stand, |rank| match rank {
            3 => of(stand, &library, FOUR).set("ipc.kernels", "/nowhere"),
            _ => of(stand, &library, FOUR),
        });
        // Of its own node, whose ranks are 1 and 3, it is number 1.
        let words = "rank 1 could not form a group inside its node: of ranks 1 and 3, numbered from \
                     0: `ipc/reduce_scatter` was asked for by backend `hierarchical` and cannot be had: ";
        assert!(why.starts_with(&format!("{CANNOT}{SETUP}{words}")), "{why}");
        assert!(why.contains("rank 1 could not open its device and load its kernels"), "{why}");
    }

    fn a_group_that_need_not_have_it_takes_the_library(stand) {
        let library = Library::build(stand, &[]);
        let uneven = [0, 1, 0, 1, 1];
        let plan = willing(of(stand, &library, &uneven), &["hierarchical", "nccl"]);
        stand.run(5, &plan, |rank| {
            let explained = rank.comm().explain(&rank.comm().signature::<f32>(Op::AllReduce, 64));
            assert_eq!(explained.chosen.expect("served").target, "nccl");
            assert!(explained.considered[0].reason.contains("nodes must have equally many"));
        });
    }

    fn it_serves_sums_and_leaves_the_rest_to_the_library(stand) {
        let library = Library::build(stand, &[]);
        let plan = willing(of(stand, &library, FOUR), &["hierarchical", "nccl"]);
        stand.run(4, &plan, |rank| {
            let comm = rank.comm();
            let served = |call: &crossover_core::call::CallSig<'_>| {
                comm.explain(call).chosen.expect("served").target
            };
            let sum = comm.signature::<f32>(Op::AllReduce, 64);
            assert_eq!(served(&sum), "hierarchical");
            assert_eq!(served(&comm.signature::<i32>(Op::AllReduce, 64)), "nccl");
            assert_eq!(served(&comm.signature::<f32>(Op::AllGather, 64)), "nccl");
            assert_eq!(comm.facts().profile().nodes, 2);
            assert!(comm.facts().profile().caps != Caps::NONE);
        });
    }

    fn groups_across_leave_room_for_each_other_on_one_device(stand) {
        let library = Library::build(stand, &[]);
        library.stand_in.told();
        stand.run(4, &of(stand, &library, FOUR), |_| ());
        let told = library.stand_in.told();
        // Two groups of two ranks, and 64 blocks that one device holds.
        let all: Vec<_> = told.lines().filter(|line| line.contains("init blocking")).collect();
        assert_eq!(all.len(), 4, "{told}");
        assert!(all.iter().all(|line| line.contains(" max_ctas=16 ")), "{told}");
    }

    fn groups_come_and_go(stand) {
        for _ in 0..5 {
            run(stand, FOUR, |rank| {
                assert_eq!(rank.comm().world(), 4);
            });
        }
        let library = Library::build(stand, &[]);
        assert_eq!(library.stand_in.alive(), Default::default());
    }
}
