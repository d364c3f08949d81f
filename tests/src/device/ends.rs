//! What cannot succeed ends, on every rank, in a sentence that names who and why.

use std::time::{Duration, Instant};

use crossover_core::call::{Dtype, Op};
use crossover_core::communicator::CallError;

use super::children::die;
use super::{Case, Rank, Stand, Target};

/// Makes a call and waits for it.
fn outcome(rank: &Rank<'_>, case: &Case<'_>) -> Result<(), CallError> {
    rank.room.clear();
    let prepared = case.prepare(rank, &rank.room);
    prepared.enqueue(rank)?;
    rank.finish()
}

/// A call that some algorithm of the target takes.
fn some_call<'a>(target: &'a Target, seed: u64) -> Case<'a> {
    Case::new(target, target.ops()[0], Dtype::F32, 64, seed)
}

/// After a failure every call is refused, with the same cause.
fn refuses(rank: &Rank<'_>, target: &Target) {
    let again = outcome(rank, &some_call(target, 99)).expect_err("the group has ended");
    assert!(matches!(again, CallError::Poisoned(_)), "{again}");
}

/// One rank calls something else: every rank gets the same sentence.
pub fn different_calls_end_alike(stand: &Stand, target: &Target) {
    let op = target.ops()[0];
    for field in ["count", "dtype", "both", "root"] {
        if field == "root" && op != Op::Broadcast {
            continue;
        }
        for world in stand.worlds(&[4]) {
            stand.run(world, &stand.plan(target), |rank| {
                some_call(target, 1).check(rank);
                // Or a rank that is ahead ends the group while another looks at the call before.
                rank.meet("all have called");
                let mut case = some_call(target, 2);
                if rank.number() == 1 {
                    match field {
                        "count" => case.call.count = 128,
                        "dtype" => case.call.dtype = Dtype::F16,
                        "both" => (case.call.dtype, case.call.count) = (Dtype::F16, 68),
                        _ => case.call.root = 1,
                    }
                }
                let error = outcome(rank, &case).expect_err("the calls differ").to_string();
                refuses(rank, target);
                let all = rank.meet(&error);
                assert!(all.iter().all(|e| *e == all[0]), "{field}: {all:#?}");
                let names =
                    all[0].contains("ranks made different calls") && all[0].contains("rank 1");
                assert!(names, "{field}: {}", all[0]);
            });
        }
    }
}

/// Ranks that are about to replay different graphs, or of which one makes a call instead, learn so
/// before their kernels meet.
pub fn other_graphs_end_alike(stand: &Stand, target: &Target) {
    for instead in ["another graph", "a call"] {
        for world in stand.worlds(&[3]) {
            stand.run(world, &stand.plan(target), |rank| {
                some_call(target, 1).check(rank);
                rank.comm().note_replay(7).expect("all replay this one");
                rank.meet("all have replayed");
                let made = match (rank.number(), instead) {
                    (1, "a call") => outcome(rank, &some_call(target, 2)),
                    (1, _) => rank.comm().note_replay(8),
                    _ => rank.comm().note_replay(7),
                };
                // Whoever comes first has nobody to differ from, and is told by what it does next.
                rank.meet("all have said what they do");
                let error = made.and_then(|()| rank.comm().check()).expect_err("they differ");
                let all = rank.meet(&error.to_string());
                assert!(all.iter().all(|e| *e == all[0]), "{instead}: {all:#?}");
                let names = all[0].contains("the replay of graph 7") && all[0].contains("rank 1");
                assert!(names, "{instead}: {}", all[0]);
            });
        }
    }
}

/// A rank that is far ahead when another makes a different call, of as many bytes: it is seen all
/// the same, before the host is told that results are right.
pub fn a_different_call_far_behind_is_seen(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[2]) {
        stand.run(world, &stand.plan(target), |rank| {
            let call = |nth: u64| {
                let mut case = some_call(target, nth);
                if rank.number() == 1 && nth == 1 {
                    (case.call.dtype, case.call.count) = (Dtype::F16, 128);
                }
                case.prepare(rank, &rank.room)
            };
            let calls: Vec<_> = (0..80).map(call).collect();
            if rank.number() == 1 {
                rank.meet("the others are ahead");
            }
            let made = calls.iter().try_for_each(|call| call.enqueue(rank));
            if rank.number() != 1 {
                made.as_ref().expect("there is nobody to differ from");
                rank.meet("the others are ahead");
            }
            rank.meet("all were made");
            let error = made.and_then(|()| rank.finish()).expect_err("they differ").to_string();
            assert!(error.contains("ranks made different calls"), "{error}");
            rank.meet("looked");
        });
    }
}

/// An abort from another thread ends the waits of all ranks' kernels.
pub fn an_abort_ends_every_wait(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            some_call(target, 1).check(rank);
            rank.meet("all have called");
            let start = Instant::now();
            if rank.number() == 1 {
                // It makes no call at all: its peers wait for it.
                let abort = rank.comm().abort_handle();
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        std::thread::sleep(Duration::from_millis(100));
                        abort.abort("the operator said so");
                        abort.abort("twice is once");
                    });
                });
            } else {
                let error = outcome(rank, &some_call(target, 2)).expect_err("aborted").to_string();
                let words = "rank 1 aborted the group: the operator said so";
                assert!(error.contains(words), "{error}");
                refuses(rank, target);
            }
            assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
            rank.meet("looked");
        });
    }
}

/// A rank that drops its group without a word hangs nobody, and is named.
pub fn a_dropped_rank_is_named(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            some_call(target, 1).check(rank);
            rank.meet("all have called");
            let start = Instant::now();
            if rank.number() == 1 {
                rank.drop_group();
            } else {
                let error = outcome(rank, &some_call(target, 2)).expect_err("it is gone");
                assert!(error.to_string().contains("rank 1"), "{error}");
                refuses(rank, target);
            }
            assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
            rank.meet("looked");
        });
    }
}

/// A rank that lives and does not come is named when the deadline has passed, and not before.
pub fn a_rank_that_never_comes_is_named(stand: &Stand, target: &Target) {
    let deadline = Duration::from_millis(stand.scale(1500, 500));
    for world in stand.worlds(&[3]) {
        let plan = stand.plan(target).deadline(deadline);
        stand.run(world, &plan, |rank| {
            some_call(target, 1).check(rank);
            rank.meet("all have called");
            let start = Instant::now();
            if rank.number() != 0 {
                let error = outcome(rank, &some_call(target, 2)).expect_err("it is late");
                let waited = start.elapsed();
                assert!(error.to_string().contains("still waiting for rank 0"), "{error}");
                assert!(waited >= deadline * 9 / 10, "{waited:?}");
                // Emulated kernels look at the clock after many looks, each of which may sleep.
                let slack = Duration::from_secs(stand.scale(20, 2));
                assert!(waited < deadline * 3 + slack, "{waited:?}");
                refuses(rank, target);
            }
            // Kernels have told for whom they wait, for a watchdog to see.
            let waits = rank.comm().watches().iter().find_map(|watch| watch.waits());
            let said = rank.meet(&waits.map_or_else(String::new, |wait| {
                format!("rank {} for {}", wait.awaited, wait.what)
            }));
            if !rank.comm().watches().is_empty() {
                assert!(said[0].is_empty(), "rank 0 waited for nobody: {said:?}");
                assert!(said.iter().any(|said| said.starts_with("rank 0 for ")), "{said:?}");
            }
            if rank.number() == 0 {
                let late = outcome(rank, &some_call(target, 2)).expect_err("they have given up");
                assert!(late.to_string().contains("still waiting for rank 0"), "{late}");
            }
        });
    }
}

/// A process that is stopped is named when the deadline has passed; when it goes on it learns that the
/// group has ended.
pub fn a_stopped_rank_is_named(stand: &Stand, target: &Target) {
    let deadline = Duration::from_millis(stand.scale(1500, 500));
    for world in stand.worlds(&[]) {
        let plan = stand.plan(target).deadline(deadline);
        stand.run(world, &plan, |rank| {
            some_call(target, 1).check(rank);
            rank.meet("all have called");
            if rank.number() == 1 {
                stop_for(Duration::from_secs(stand.scale(5, 3)));
                let late = outcome(rank, &some_call(target, 2)).expect_err("they have given up");
                assert!(late.to_string().contains("still waiting for rank 1"), "{late}");
            } else {
                let error = outcome(rank, &some_call(target, 2)).expect_err("it is stopped");
                assert!(error.to_string().contains("still waiting for rank 1"), "{error}");
                refuses(rank, target);
            }
            rank.meet("looked");
        });
    }
}

/// Stops this process; another one lets it go on.
fn stop_for(time: Duration) {
    use rustix::process::{Signal, getpid, kill_process};
    let own = getpid();
    let wake = format!("sleep {}; kill -CONT {}", time.as_secs(), own.as_raw_nonzero());
    let mut waker = std::process::Command::new("sh").args(["-c", &wake]).spawn().expect("a shell");
    kill_process(own, Signal::STOP).expect("a process may stop itself");
    let _ = waker.wait();
}

/// A process that is killed hangs nobody, and is named. Its peers end as well: the last of a list of
/// tests.
#[expect(clippy::exit, reason = "nobody is left to part with")]
pub fn a_killed_rank_is_named(stand: &Stand, target: &Target) {
    let deadline = Duration::from_millis(stand.scale(3000, 1000));
    for world in stand.worlds(&[]) {
        let plan = stand.plan(target).deadline(deadline);
        stand.run(world, &plan, |rank| {
            some_call(target, 1).check(rank);
            rank.meet("all have called");
            if rank.number() == 1 {
                die();
            }
            let start = Instant::now();
            let error = outcome(rank, &some_call(target, 2)).expect_err("it is dead").to_string();
            assert!(error.contains("rank 1"), "{error}");
            assert!(error.contains("was lost") || error.contains("still waiting"), "{error}");
            assert!(start.elapsed() < deadline * 3 + Duration::from_secs(20), "{error}");
            refuses(rank, target);
            std::process::exit(0);
        });
    }
}
