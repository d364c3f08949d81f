//! One event is one error on every rank, whoever found it: the same kind, and so the same exit code.
//! Ranks are threads here; `hangs/alike.rs` has the same with processes.

use std::time::Duration;

use crossover::{CallError, Communicator, ReduceOp, call_exit_code};
use crossover_core::backend::EnqueueError;
use crossover_core::verdict::Verdict;
use crossover_tests::groups::{Plan, run};

/// Makes a call and returns what it failed with.
fn failed(group: &Communicator, count: usize) -> CallError {
    let ended = group.all_reduce_in_place(&mut vec![1f32; count], ReduceOp::Sum);
    ended.expect_err("the group has ended")
}

/// All ranks but those that made no call failed with this, and end with this code.
#[track_caller]
fn alike(ends: &[Option<CallError>], code: u8, is_it: impl Fn(&EnqueueError) -> bool) {
    for (rank, error) in ends.iter().enumerate() {
        let Some(error) = error else { continue };
        assert_eq!(call_exit_code(error), code, "rank {rank}: {ends:#?}");
        let CallError::Failed(error) = error else { panic!("rank {rank}: {ends:#?}") };
        assert!(is_it(error), "rank {rank}: {ends:#?}");
    }
}

#[test]
fn calls_that_differ() {
    for odd in 0..3 {
        let ends = run(3, &Plan::forcing("host"), |group| {
            let rank = group.rank();
            // Who comes last finds it as often as who comes first.
            std::thread::sleep(Duration::from_millis(20) * ((rank + odd) % 3));
            Some(failed(group, if rank == odd { 9 } else { 8 }))
        });
        let is_it = |e: &EnqueueError| {
            let EnqueueError::Mismatch { seq: 1, what } = e else { return false };
            what.starts_with(&format!("rank {odd} has count 9"))
        };
        alike(&ends, 1, is_it);
    }
}

#[test]
fn a_rank_that_is_gone() {
    let ends = crossover_tests::groups::try_run(
        4,
        |_| Plan::forcing("host"),
        |group| {
            let group = group.expect("the group forms");
            group.all_gather(&[1u8], &mut [0; 4]).expect("all are here");
            let rank = group.rank();
            // Rank 3 comes when the others have told one another, and gone as well.
            std::thread::sleep(Duration::from_millis(100) * (rank / 3 * 3));
            (rank != 1).then(|| failed(&group, 8))
        },
    );
    alike(&ends, 4, |e| matches!(e, EnqueueError::Lost { rank: 1, seq: 2, .. }));
}

#[test]
fn a_rank_that_is_late() {
    let plan = Plan::forcing("host").deadline(Duration::from_millis(300));
    let ends = run(3, &plan, |group| {
        if group.rank() == 2 {
            std::thread::sleep(Duration::from_millis(900));
        }
        Some(failed(group, 8))
    });
    alike(&ends, 4, |e| matches!(e, EnqueueError::Late { ranks, seq: 1, .. } if ranks == &[2]));
}

/// What one rank's watchdog has found is what all ranks' calls fail with, in its words.
#[test]
fn what_one_rank_alone_has_found() {
    let (step, how) = ("the watchdog".to_owned(), "frozen".to_owned());
    let waited = Duration::from_millis(1500);
    let found = [
        (1, Verdict::Mismatch { seq: 1, what: "rank 1 has a call at another place".to_owned() }),
        (4, Verdict::Lost { step: step.clone(), seq: 1, rank: 1, how }),
        (4, Verdict::Late { step, seq: 1, ranks: vec![1, 2], waited }),
    ];
    for (code, verdict) in found {
        for finder in 0..3 {
            let ends = run(3, &Plan::forcing("host"), |group| {
                if group.rank() == finder {
                    // From another thread, while its peers wait for it.
                    std::thread::sleep(Duration::from_millis(20));
                    let handle = group.abort_handle();
                    std::thread::scope(|scope| {
                        scope.spawn(|| {
                            handle.end(&verdict);
                            handle.abort("it has ended already");
                        });
                    });
                }
                let error = failed(group, 8);
                let later = failed(group, 8);
                let CallError::Poisoned(later) = &later else { panic!("{later}") };
                assert!(matches!(&error, CallError::Failed(error) if error == later));
                assert!(matches!(group.check(), Err(CallError::Poisoned(_))));
                Some(error)
            });
            alike(&ends, code, |e| *e == verdict.clone().into_error("", 0));
        }
    }
}

/// A rank that makes no call learns of an end when it asks.
#[test]
fn who_makes_no_call_is_told_when_it_asks() {
    let verdict = Verdict::Mismatch { seq: 1, what: "rank 1 has count 9".to_owned() };
    let ends = run(2, &Plan::forcing("host"), |group| {
        group.check().expect("the group is well");
        group.all_gather(&[1u8], &mut [0; 2]).expect("all are here");
        if group.rank() == 1 {
            group.abort_handle().end(&verdict);
        }
        while group.check().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(failed(group, 8))
    });
    for error in ends.into_iter().flatten() {
        assert_eq!(error, CallError::Poisoned(verdict.clone().into_error("", 0)));
    }
}
