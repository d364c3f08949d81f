//! What cannot succeed ends, on every rank, in one sentence that names who and why.

use std::time::{Duration, Instant};

use crossover_core::call::{CallBuffers, CallSig, Dtype, Op, ReduceOp};
use crossover_core::communicator::CallError;

use super::Case;
use crate::groups::{Plan, run, try_run};

/// One rank calls something else: every rank gets the same sentence, which names it.
pub fn different_calls_end_alike_on_all_ranks(target: &str) {
    let plan = Plan::forcing(target).deadline(Duration::from_secs(20));
    type Odd = fn(&mut CallSig<'static>);
    let odd: [(&str, Odd); 6] = [
        ("count", |c| c.count = 409_600),
        ("dtype", |c| c.dtype = Dtype::I32),
        ("reduce", |c| c.reduce_op = ReduceOp::Max),
        ("op", |c| c.op = Op::AllGather),
        ("root", |c| (c.op, c.root) = (Op::Broadcast, 1)),
        ("count", |c| c.count = 0),
    ];
    for (field, change) in odd {
        let errors = run(4, &plan, |comm| {
            let mut call = comm.signature::<f32>(Op::AllReduce, 3000);
            if field == "root" {
                call.op = Op::Broadcast;
            }
            if comm.rank() == 2 {
                change(&mut call);
            }
            let (input, mut output) = (vec![1u8; 1 << 22], vec![0u8; 1 << 23]);
            let buffers =
                CallBuffers { input: input.as_ptr(), output: output.as_mut_ptr(), stream: 0 };
            // SAFETY: both buffers are larger than any of these calls needs.
            let error = unsafe { comm.run(&call, &buffers) }.expect_err("the calls differ");
            // And the group stays unusable, at once.
            let again = comm.all_reduce_in_place(&mut [1f32], ReduceOp::Sum);
            assert!(matches!(again, Err(CallError::Poisoned(_))), "{again:?}");
            error.to_string()
        });
        assert!(errors.iter().all(|e| *e == errors[0]), "{field}: {errors:#?}");
        assert!(
            errors[0].contains("rank 2") && errors[0].contains(field),
            "{field}: {}",
            errors[0]
        );
    }
}

/// Calls that make no sense start nothing, on any rank.
pub fn nonsense_is_refused_and_harmless(target: &str) {
    run(2, &Plan::forcing(target), |comm| {
        let bad = [
            comm.broadcast(&mut [0f32; 4], 2),
            comm.reduce_scatter(&[0f32; 5], &mut [0f32; 2], ReduceOp::Sum),
            comm.all_to_all(&[0f32; 3], &mut [0f32; 3]),
            comm.all_gather(&[0f32; 3], &mut [0f32; 5]),
            comm.all_gather_v(&[0f32; 3], &[3], &mut [0f32; 3]),
            comm.all_gather_v(&[0f32; 1], &[usize::MAX, 1], &mut [0f32; 3]),
        ];
        for refused in bad {
            assert!(matches!(refused, Err(CallError::Invalid { .. })), "{refused:?}");
        }
        Case::new(Op::AllReduce, Dtype::F32, 11, 1).check(comm);
    });
}

/// An abort from another thread ends the waits of all ranks, whoever waits for whom.
pub fn an_abort_ends_every_wait(target: &str) {
    let start = Instant::now();
    let errors = run(3, &Plan::forcing(target), |comm| {
        comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum).expect("all are here");
        let abort = comm.abort_handle();
        std::thread::scope(|scope| {
            if comm.rank() == 1 {
                // It makes no call at all: its peers wait for it.
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(100));
                    abort.abort("the operator said so");
                    abort.abort("twice is once");
                });
                return None;
            }
            Some(comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum).expect_err("aborted"))
        })
    });
    for error in errors.into_iter().flatten() {
        let words = error.to_string();
        assert!(words.contains("rank 1 aborted the group: the operator said so"), "{words}");
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A rank that drops its communicator without a word ends its peers' waits at once.
pub fn a_dropped_rank_is_named(target: &str) {
    let start = Instant::now();
    let plan = Plan::forcing(target);
    let errors = try_run(
        3,
        |_| plan.clone(),
        |formed| {
            let comm = formed.expect("the group forms");
            comm.all_gather(&[1u8], &mut [0u8; 3]).expect("all are here");
            if comm.rank() == 2 {
                drop(comm);
                return None;
            }
            Some(comm.all_gather(&[1u8], &mut [0u8; 3]).expect_err("rank 2 is gone"))
        },
    );
    for error in errors.into_iter().flatten() {
        assert!(error.to_string().contains("rank 2 was lost"), "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A rank that lives and does not come is named when the deadline has passed, and not before.
pub fn a_late_rank_is_named(target: &str) {
    let deadline = Duration::from_millis(400);
    let plan = Plan::forcing(target).deadline(deadline);
    let waits = run(3, &plan, |comm| {
        comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum).expect("all are here");
        let start = Instant::now();
        if comm.rank() == 0 {
            std::thread::sleep(deadline * 4);
            let late = comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum);
            assert!(late.is_err(), "the others have given up: {late:?}");
            return None;
        }
        let error = comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum).expect_err("late");
        assert!(error.to_string().contains("still waiting for rank 0"), "{error}");
        Some(start.elapsed())
    });
    // The first to give up tells the other, which has waited a little less.
    let longest = waits.into_iter().flatten().max().expect("two ranks waited");
    assert!(longest >= deadline && longest < deadline * 3, "{longest:?}");
}
