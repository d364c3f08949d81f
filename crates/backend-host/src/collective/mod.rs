//! Who copies what where: one file per op, or per algorithm of an op; each a loop over windows of
//! at most a slot.
//!
//! All of them are bit-exact in the same way: copies are copies, and reductions run over the
//! contributions in rank order, so that neither the algorithm nor the windows show in the result.
//! No slice is ever formed over the engine's memory: it may be misaligned, and input and output
//! may be the same.

mod all_gather;
mod all_reduce;
mod all_to_all;
mod broadcast;
mod parts;
mod reduce_scatter;

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig, Op};

use crate::eligibility::TWO_SHOT;
use crate::exchange::Exchange;
use crate::mover::Mover;

/// Bytes of a slot that let a call of even parts run in one window: a multiple of 64.
pub(crate) fn room(algorithm: usize, call: &CallSig<'_>, world: u32) -> usize {
    let lines = (call.bytes() as usize).div_ceil(64);
    let share = lines.div_ceil(world as usize);
    let needed = match (call.op, algorithm) {
        (Op::AllReduce, TWO_SHOT) => lines + share, // see `all_reduce::two_shot`: input and results
        (Op::ReduceScatter | Op::AllToAll, _) => world as usize * share,
        _ => lines,
    };
    needed * 64
}

/// Runs a call.
///
/// # Safety
///
/// As for [`Session::enqueue`](crossover_core::backend::Session::enqueue).
#[inline]
pub(crate) unsafe fn run(
    algorithm: usize,
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    // SAFETY: the caller's promise about the buffers is passed on as it is.
    unsafe {
        match (call.op, algorithm) {
            (Op::AllReduce, TWO_SHOT) => all_reduce::two_shot(call, buffers, exchange, mover),
            (Op::AllReduce, _) => all_reduce::one_shot(call, buffers, exchange, mover),
            (Op::AllGather, _) => all_gather::run(call, buffers, exchange, mover),
            (Op::ReduceScatter, _) => reduce_scatter::run(call, buffers, exchange, mover),
            (Op::Broadcast, _) => broadcast::run(call, buffers, exchange, mover),
            (Op::AllToAll, _) => all_to_all::run(call, buffers, exchange, mover),
        }
    }
}
