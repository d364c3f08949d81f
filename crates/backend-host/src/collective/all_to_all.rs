//! Every rank gives one part to each rank, and receives one from each, in rank order.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::parts::{Parts, give_parts, piece, windows};
use crate::exchange::Exchange;
use crate::mover::Mover;

/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn run(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let rank = exchange.rank();
    let parts = Parts::of(call, exchange.world());
    let region = exchange.region();
    for start in windows(parts.longest(), region) {
        // SAFETY: the input, and regions of a slot.
        let slots = unsafe { give_parts(exchange, mover, parts, buffers.input, start, region) }?;
        for peer in exchange.peers() {
            let theirs = piece(parts.range(peer), start, region);
            let slot = exchange.slot(slots, peer);
            // SAFETY: the peer has filled this rank's region; inside the output. If that is the
            // input too, what it held here has just been given away.
            unsafe {
                let from = slot.add(rank as usize * region);
                mover.take(from, buffers.output.add(theirs.start), theirs.len());
            }
        }
    }
    let mine = parts.range(rank);
    // SAFETY: the own part of input and output, which may be the same memory.
    unsafe {
        let (from, to) = (buffers.input.add(mine.start), buffers.output.add(mine.start));
        mover.keep(from, to, mine.len());
    }
    Ok(())
}
