//! What cannot succeed ends, on every rank, in a sentence that names who, where and why: ranks by
//! their numbers in the whole group. A node learns at once how a rank of its own ended; other nodes,
//! which share no memory with it, when their deadline has passed.

use std::time::{Duration, Instant};

use crossover_core::call::{Dtype, Op};
use crossover_core::communicator::CallError;
use crossover_tests::device::{Case, Rank, Stand, Target};

use crate::nodes::{FOUR, of, refusal, target};
use crate::stage::{Library, tests_apart};

/// How long ranks wait where one never comes.
const SOON: Duration = Duration::from_secs(3);

/// Makes a call and waits for it.
fn outcome(rank: &Rank<'_>, target: &Target, count: usize) -> Result<(), CallError> {
    rank.room.clear();
    let prepared = Case::new(target, Op::AllReduce, Dtype::F32, count, 9).prepare(rank, &rank.room);
    prepared.enqueue(rank)?;
    rank.finish()
}

/// The same, until it has ended: peers that are told of an end only by others look again, as engines
/// do.
fn ending(rank: &Rank<'_>, target: &Target) -> String {
    let error = outcome(rank, target, 64).expect_err("the group has ended").to_string();
    let again = outcome(rank, target, 64).expect_err("and stays so");
    assert!(matches!(again, CallError::Poisoned(_)), "{again}");
    error
}

/// On each rank but one, which does `act` instead of its second call: how that ends. Two nodes of two
/// ranks, by turns: rank 1's own node has rank 3 as well, and rank 0 has its number on the other.
fn without(stand: &Stand, absent: usize, act: impl Fn(&mut Rank<'_>) + Sync) -> Vec<String> {
    let library = Library::build(stand, &[]);
    let target = target();
    let told = std::sync::Mutex::new(vec![String::new(); 4]);
    stand.run(4, &of(stand, &library, FOUR).deadline(SOON), |rank| {
        Case::new(&target, Op::AllReduce, Dtype::F32, 64, 1).check(rank);
        rank.meet("all have called");
        let began = Instant::now();
        if rank.number() == absent {
            act(rank);
        } else {
            let error = ending(rank, &target);
            told.lock().expect("no rank panics")[rank.number()] = error;
        }
        assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
        rank.meet("looked");
    });
    told.into_inner().expect("no rank panics")
}

tests_apart! {
    fn a_dropped_rank_is_named_inside_and_across(stand) {
        let told = without(stand, 1, |rank| rank.drop_group());
        let words = "rank 1 aborted the group: it dropped the group without closing it";
        assert!(told[3].contains("inside its node") && told[3].contains(words), "{told:#?}");
        // On the other node nobody knows more than who has not come: rank 1, or rank 3, which has
        // given up.
        for rank in [0, 2] {
            assert!(told[rank].contains("across nodes"), "{told:#?}");
            assert!(told[rank].contains("still waiting for rank"), "{told:#?}");
        }
    }

    fn an_abort_ends_every_wait_and_no_part_of_it_passes_for_a_result(stand) {
        let told = without(stand, 2, |rank| {
            std::thread::sleep(Duration::from_millis(100));
            rank.comm().abort_handle().abort("the operator said so");
        });
        let words = "rank 2 aborted the group: the operator said so";
        assert!(told[0].contains("inside its node") && told[0].contains(words), "{told:#?}");
        // It waits for rank 2, or hears of rank 1 before, which is on its node.
        let waits = told[3].contains("across nodes") && told[3].contains("waiting for rank 2");
        assert!(waits || told[3].contains("rank 1 aborted the group"), "{told:#?}");
        // Its own kernels and its own library calls all came to their end: rank 0's kernel, which
        // gave up, was followed by rank 0's part of the sum across.
        assert!(!told[1].is_empty(), "{told:#?}");
    }

    fn a_rank_that_never_comes_is_named(stand) {
        let told = without(stand, 0, |_| std::thread::sleep(3 * SOON));
        assert!(told[2].contains("inside its node"), "{told:#?}");
        assert!(told[2].contains("still waiting for rank 0"), "{told:#?}");
        assert!(told.iter().skip(1).all(|text| !text.is_empty()), "{told:#?}");
    }

    fn an_error_of_the_library_is_told_with_its_place(stand) {
        let library = Library::build(stand, &[]);
        let target = target();
        // Rank 1 of the groups across: ranks 1 and 3 of the whole. How many calls are made before the
        // group is one is the backend's; each of ours makes two.
        let plan = || of(stand, &library, FOUR).deadline(SOON).set("nccl.window", "0B");
        let fail = |call: u32| library.stand_in.fail(Some(&format!("rank=1 call={call} fail")));
        let first = (5..64).find(|call| {
            fail(*call);
            refusal(stand, |_| plan()) == "it forms"
        });
        fail(first.expect("it forms at last") + 2);
        let told = std::sync::Mutex::new(vec![String::new(); 4]);
        stand.run(4, &plan(), |rank| {
            Case::new(&target, Op::AllReduce, Dtype::F32, 64, 1).check(rank);
            rank.meet("all have called");
            let error = ending(rank, &target);
            told.lock().expect("no rank panics")[rank.number()] = error;
            rank.meet("looked");
        });
        let told = told.into_inner().expect("no rank panics");
        let words = "across nodes, nccl, all_reduce, call 3 there, call 2: ncclAllReduce failed: ";
        assert!(told[1].contains(words) || told[3].contains(words), "{told:#?}");
        assert!(told[1].contains("ncclAllReduce failed: "), "{told:#?}");
        assert!(told[3].contains("ncclAllReduce failed: "), "{told:#?}");
        assert!(told.iter().all(|text| !text.is_empty()), "{told:#?}");
    }

    fn different_calls_are_told_to_all(stand) {
        let library = Library::build(stand, &[]);
        let target = target();
        stand.run(4, &of(stand, &library, FOUR).deadline(SOON), |rank| {
            Case::new(&target, Op::AllReduce, Dtype::F32, 64, 1).check(rank);
            rank.meet("all have called");
            let count = if rank.number() == 1 { 128 } else { 64 };
            let error = outcome(rank, &target, count).expect_err("the calls differ").to_string();
            let all = rank.meet(&error);
            let words = "ranks made different calls: inside its node (ranks 1 and 3, numbered from 0)";
            assert!(all[1].contains(words) || all[3].contains(words), "{all:#?}");
            assert!(all[1].contains("different calls"), "{all:#?}");
            assert!(all[3].contains("different calls"), "{all:#?}");
        });
    }
}
