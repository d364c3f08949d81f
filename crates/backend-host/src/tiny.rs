//! A call whose whole input fits into one cache line: it travels beside the arrival word, so that a
//! peer that sees the rank arrive has its data already. One rendezvous, whatever the op.

use std::sync::atomic::Ordering::Relaxed;

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig, Op, Split};

use crate::eligibility::{ONE_SHOT, TWO_SHOT};
use crate::header::Header;
use crate::layout::INLINE;
use crate::memory::{self, copy_tiny};
use crate::mismatch;
use crate::protocol::Met;
use crate::reduce::{Sources, Target, reduce};
use crate::session::HostSession;
use crate::wait::Wait;

/// Is the call one? A function of the call, so that ranks agree.
#[inline(always)]
pub(crate) fn takes(algorithm: usize, call: &CallSig<'_>) -> bool {
    let one_step = algorithm == ONE_SHOT || algorithm == TWO_SHOT && call.op != Op::AllReduce;
    one_step && call.bytes() <= INLINE as u64 && matches!(call.split, Split::Even)
}

/// Runs such a call.
///
/// # Safety
///
/// As for [`Session::enqueue`](crossover_core::backend::Session::enqueue).
#[inline(always)]
pub(crate) unsafe fn run(
    session: &mut HostSession,
    header: &Header,
    call: &CallSig<'_>,
    buffers: &CallBuffers,
) -> Result<(), EnqueueError> {
    let HostSession { segment, liveness, steps, habits, .. } = session;
    let (rank, world) = (habits.rank, segment.layout().world);
    let step = steps.begin(header.tag());
    let parity = step.parity();
    let bytes = call.bytes() as usize;
    if call.op != Op::Broadcast || rank == call.root {
        // SAFETY: the input, and room for it that nobody else touches now.
        unsafe { copy_tiny(buffers.input, segment.inline(rank, parity), bytes) };
    }
    segment.seq(rank, parity).store(header.seq(), Relaxed);
    header.write(segment, rank, parity);
    steps.publish(step, &**segment);

    let place = || mismatch::place(header, 1);
    let mut wait = Wait::new(habits, segment, liveness, place, header.seq());
    let met = steps.meet(step, &**segment, &mut wait)?;
    let same = |peer| segment.seq(peer, parity).load(Relaxed) == header.seq();
    if met == Met::Unlike || !(0..world).all(same) {
        return Err(mismatch::found(segment, header, 1, parity));
    }

    // What each rank gave; the own input may be read where it is.
    let given = |peer: u32| segment.inline(peer, parity).cast_const();
    let (part, output) = (bytes / world as usize, buffers.output);
    // SAFETY: every peer's line holds its input until the next step is published. Where the own
    // input is the output, what is overwritten has been given away.
    unsafe {
        match call.op {
            Op::AllReduce => {
                let target = Target { to: output, also: None, stream: false };
                reduce(call.dtype, call.reduce_op, &Sources::new(world, given), &target, bytes);
            }
            Op::ReduceScatter => {
                let mine = |peer| given(peer).add(part * rank as usize);
                let target = Target { to: output, also: None, stream: false };
                reduce(call.dtype, call.reduce_op, &Sources::new(world, mine), &target, part);
            }
            Op::AllGather => {
                for peer in 0..world {
                    copy_tiny(given(peer), output.add(bytes * peer as usize), bytes);
                }
            }
            Op::Broadcast => copy_tiny(given(call.root), output, bytes),
            Op::AllToAll => {
                for peer in 0..world {
                    let theirs = given(peer).add(part * rank as usize);
                    copy_tiny(theirs, output.add(part * peer as usize), part);
                }
            }
        }
    }
    memory::claim(segment.inline(rank, steps.next_parity()), 1);
    Ok(())
}
