//! What cannot succeed ends, on every rank, in a sentence that names who, where and why: ranks by
//! their numbers in the whole group.

use std::time::{Duration, Instant};

use crossover_core::call::{Dtype, Op};
use crossover_core::communicator::CallError;
use crossover_tests::device::{Case, Rank, Stand, Target};

use crate::nodes::{FOUR, of, run, target};
use crate::stage::{Library, tests_apart};

/// How long ranks wait where one never comes.
const SOON: Duration = Duration::from_millis(1500);

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
fn without(
    stand: &Stand,
    absent: usize,
    deadline: Duration,
    act: impl Fn(&mut Rank<'_>) + Sync,
) -> Vec<String> {
    let library = Library::build(stand, &[]);
    let target = target();
    let told = std::sync::Mutex::new(vec![String::new(); 4]);
    stand.run(4, &of(stand, &library, FOUR).deadline(deadline), |rank| {
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
        let told = without(stand, 1, Duration::from_secs(20), |rank| rank.drop_group());
        for (rank, words) in [(0, "across nodes"), (3, "inside its node")] {
            assert!(told[rank].contains(words), "{told:#?}");
            assert!(told[rank].contains("rank 1"), "{told:#?}");
        }
        // Neither its node nor its number: others tell it, and it repeats what they say.
        assert!(told[2].contains("rank 0") || told[2].contains("rank 3"), "{told:#?}");
        assert!(told[2].contains("rank 1"), "{told:#?}");
    }

    fn an_abort_ends_every_wait(stand) {
        let told = without(stand, 2, Duration::from_secs(30), |rank| {
            std::thread::sleep(Duration::from_millis(100));
            rank.comm().abort_handle().abort("the operator said so");
        });
        for rank in [0, 1, 3] {
            assert!(told[rank].contains("the operator said so"), "{told:#?}");
        }
        assert!(told[0].contains("inside its node"), "{told:#?}");
        assert!(told[0].contains("rank 2 aborted the group"), "{told:#?}");
        assert!(told[3].contains("rank 2 aborted the group"), "{told:#?}");
    }

    fn a_rank_that_never_comes_is_named(stand) {
        let told = without(stand, 0, SOON, |_| std::thread::sleep(4 * SOON));
        assert!(told[2].contains("inside its node"), "{told:#?}");
        assert!(told[2].contains("rank 0"), "{told:#?}");
        assert!(told.iter().skip(1).all(|text| !text.is_empty()), "{told:#?}");
    }

    fn an_error_of_the_library_is_told_with_its_place(stand) {
        let library = Library::build(stand, &[]);
        let target = target();
        // Rank 1 of the groups across: ranks 1 and 3 of the whole. Ten first calls, and one more.
        library.stand_in.fail(Some("rank=1 call=12 fail"));
        let told = std::sync::Mutex::new(vec![String::new(); 4]);
        let plan = of(stand, &library, FOUR).set("nccl.window", "0B");
        stand.run(4, &plan, |rank| {
            Case::new(&target, Op::AllReduce, Dtype::F32, 64, 1).check(rank);
            rank.meet("all have called");
            let error = ending(rank, &target);
            told.lock().expect("no rank panics")[rank.number()] = error;
            rank.meet("looked");
        });
        let told = told.into_inner().expect("no rank panics");
        assert!(told.iter().all(|text| text.contains("ncclAllReduce failed: ")), "{told:#?}");
        let words = "across nodes, nccl, all_reduce, call 2 there, call 2: ncclAllReduce failed: ";
        assert!(told[1].contains(words) || told[3].contains(words), "{told:#?}");
    }

    fn different_calls_are_told_to_all(stand) {
        let target = target();
        run(stand, FOUR, |rank| {
            Case::new(&target, Op::AllReduce, Dtype::F32, 64, 1).check(rank);
            rank.meet("all have called");
            let count = if rank.number() == 1 { 128 } else { 64 };
            let error = outcome(rank, &target, count).expect_err("the calls differ").to_string();
            assert!(error.contains("ranks made different calls"), "{error}");
            let all = rank.meet(&error);
            let words = "ranks made different calls: inside its node (ranks 1 and 3, numbered from 0)";
            assert!(all[1].contains(words) && all[3].contains(words), "{all:#?}");
        });
    }
}
