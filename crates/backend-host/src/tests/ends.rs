//! How waits end when they cannot end well: late, lost, aborted, mismatched.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crossover_core::backend::{EnqueueError, Session};
use crossover_core::call::{CallBuffers, CallSig, Dtype, Op, ReduceOp};
use crossover_core::settings::BackendSettings;
use crossover_core::verdict::Verdict;

use super::data::{call, sum, ways};
use super::{group, settings};
use crate::session::HostSession;

#[test]
fn a_late_rank_is_named_by_all_itself_included() {
    let settings =
        BackendSettings { call_deadline: Duration::from_millis(300), ..settings("64KiB") };
    let given_up = Barrier::new(3);
    let errors = group(3, &settings, |rank, mut session| {
        if rank == 2 {
            given_up.wait();
        }
        let error = make(&mut session, 1, &sum(4)).unwrap_err();
        if rank != 2 {
            given_up.wait();
        }
        error
    });
    for error in &errors {
        let EnqueueError::Late { step, seq: 1, ranks, waited } = error else { panic!("{error}") };
        assert_eq!(
            (ranks.as_slice(), &step[..]),
            (&[2][..], "host/one_shot all_reduce, rendezvous 1")
        );
        assert!(*waited >= Duration::from_millis(300), "{waited:?}");
    }
}

#[test]
fn a_dropped_rank_is_lost_soon_and_the_same_on_all() {
    let errors = group(4, &settings("64KiB"), |rank, mut session| {
        make(&mut session, 1, &sum(4)).unwrap();
        if rank == 1 {
            return None;
        }
        let since = Instant::now();
        let error = make(&mut session, 2, &sum(4)).unwrap_err();
        // Soon, and not at the deadline of a minute; loaded machines get their time.
        assert!(since.elapsed() < Duration::from_secs(5));
        Some(error.to_string())
    });
    let how = "rank 1 was lost: its process ended, or it dropped the group without closing it";
    let expected = format!("host/one_shot all_reduce, rendezvous 1, call 2: {how}");
    for rank in [0, 2, 3] {
        assert_eq!(errors[rank].as_deref(), Some(&expected[..]));
    }
}

#[test]
fn a_rank_that_gives_up_tells_whom_it_missed() {
    // Rank 0 leaves after the first call; rank 1 notices and leaves; rank 2, which comes later,
    // finds both gone and must still name rank 0.
    let errors = group(3, &settings("64KiB"), |rank, mut session| {
        make(&mut session, 1, &sum(4)).unwrap();
        std::thread::sleep(Duration::from_millis([0, 0, 200][rank as usize]));
        (rank > 0).then(|| make(&mut session, 2, &sum(4)).unwrap_err())
    });
    assert_eq!(errors[1], errors[2]);
    assert!(matches!(errors[2], Some(EnqueueError::Lost { rank: 0, seq: 2, .. })));
}

#[test]
fn different_calls_are_the_same_sentence_everywhere() {
    for (odd, what) in [
        (sum(9), "rank 1 has count 9, ranks 0, 2 and 3 have 8"),
        (
            CallSig { dtype: Dtype::I32, ..sum(8) },
            "rank 1 has dtype i32, ranks 0, 2 and 3 have f32",
        ),
        (
            CallSig { reduce_op: ReduceOp::Max, ..sum(8) },
            "rank 1 has reduce op max, ranks 0, 2 and 3 have sum",
        ),
        (
            call(Op::AllGather, Dtype::F32, ReduceOp::Sum, 2),
            "rank 1 has op all_gather, ranks 0, 2 and 3 have all_reduce",
        ),
        // Of sizes that take different numbers of steps, and nothing at all.
        (sum(100_000), "rank 1 has count 100000, ranks 0, 2 and 3 have 8"),
        (sum(0), "rank 1 has count 0, ranks 0, 2 and 3 have 8"),
    ] {
        let errors = group(4, &settings("1KiB"), |rank, mut session| {
            make(&mut session, 1, &sum(100)).unwrap();
            let call = if rank == 1 { odd } else { sum(8) };
            make(&mut session, 2, &call).unwrap_err().to_string()
        });
        let expected = format!("call 2: ranks made different calls: {what}");
        assert_eq!(errors, vec![expected; 4]);
    }
}

#[test]
fn an_abort_ends_every_wait_and_every_later_call() {
    group(3, &settings("64KiB"), |rank, mut session| {
        let aborts = session.abort_handle();
        if rank == 2 {
            // From another thread, while the peers wait for a call that comes too late.
            let another = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                aborts.abort(&Verdict::aborted(2, &"out of patience ".repeat(200)));
            });
            another.join().unwrap();
        }
        let error = make(&mut session, 1, &sum(4)).unwrap_err();
        let EnqueueError::Aborted { seq: 1, rank: 2, reason, .. } = error else {
            panic!("{error}")
        };
        assert!(reason.starts_with("out of patience out") && reason.len() <= 1024);
        let again = make(&mut session, 2, &sum(4)).unwrap_err();
        assert!(matches!(again, EnqueueError::Aborted { seq: 2, rank: 2, .. }));
    });
}

#[test]
fn goodbye_is_met_by_all() {
    group(3, &settings("64KiB"), |_, mut session| {
        make(&mut session, 1, &sum(4)).unwrap();
        session.close(1).unwrap();
    });
}

#[test]
fn who_closes_while_others_go_on_is_named() {
    let errors = group(3, &settings("64KiB"), |rank, mut session| {
        make(&mut session, 1, &sum(4)).unwrap();
        let ended = if rank == 1 { session.close(1) } else { make(&mut session, 2, &sum(4)) };
        ended.unwrap_err()
    });
    for error in errors {
        let EnqueueError::Lost { rank: 1, how, .. } = error else { panic!("{error}") };
        assert_eq!(how, "it closed the group while ranks 0 and 2 called all_reduce");
    }
}

fn make(session: &mut HostSession, seq: u64, call: &CallSig<'_>) -> Result<(), EnqueueError> {
    let bytes = 4 * call.bytes() as usize;
    let (input, mut output) = (vec![0u8; bytes], vec![0u8; bytes]);
    let buffers = CallBuffers { input: input.as_ptr(), output: output.as_mut_ptr(), stream: 0 };
    // SAFETY: both are at least as large as the call says, for the groups of four of these tests.
    unsafe { session.enqueue(0, &ways(seq), seq, call, &buffers) }
}
