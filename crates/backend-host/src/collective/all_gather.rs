//! Every rank gives a part, every rank receives all parts in rank order.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::keep;
use super::parts::{Parts, piece, windows};
use crate::exchange::Exchange;

/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn run(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    mut exchange: Exchange<'_>,
) -> Result<(), EnqueueError> {
    let (rank, world, width) = (exchange.rank(), exchange.world(), exchange.layout().chunk);
    let parts = Parts::of(call, world);
    let mine = parts.range(rank);
    for start in windows(parts.longest(), width) {
        let given = piece(0..mine.len(), start, width);
        let slots = exchange.meet(|own| {
            // SAFETY: inside this rank's part, and a slot that no one else touches now.
            unsafe { own.copy_from_nonoverlapping(buffers.input.add(given.start), given.len()) };
        })?;
        for peer in (0..world).filter(|peer| *peer != rank) {
            let theirs = piece(parts.range(peer), start, width);
            let slot = exchange.slot(slots, peer);
            // SAFETY: the peer has filled as much of its slot; inside the output.
            unsafe {
                buffers.output.add(theirs.start).copy_from_nonoverlapping(slot, theirs.len());
            }
        }
    }
    // SAFETY: the own part of input and output, which may be the same memory.
    unsafe { keep(buffers.input, buffers.output.add(mine.start), mine.len()) };
    Ok(())
}
