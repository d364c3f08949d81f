//! Every rank gives one part to each rank, and receives one from each, in rank order.

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
    let (rank, world, region) = (exchange.rank(), exchange.world(), exchange.layout().region());
    let parts = Parts::of(call, world);
    for start in windows(parts.longest(), region) {
        let slots = exchange.meet(|own| {
            for peer in (0..world).filter(|peer| *peer != rank) {
                let theirs = piece(parts.range(peer), start, region);
                // SAFETY: inside the input, and a region of a slot that no one else touches now.
                unsafe {
                    own.add(peer as usize * region)
                        .copy_from_nonoverlapping(buffers.input.add(theirs.start), theirs.len());
                }
            }
        })?;
        for peer in (0..world).filter(|peer| *peer != rank) {
            let theirs = piece(parts.range(peer), start, region);
            let slot = exchange.slot(slots, peer);
            // SAFETY: the peer has filled this rank's region; inside the output. If that is the
            // input too, what it held here has just been given away.
            unsafe {
                buffers
                    .output
                    .add(theirs.start)
                    .copy_from_nonoverlapping(slot.add(rank as usize * region), theirs.len());
            }
        }
    }
    let mine = parts.range(rank);
    // SAFETY: the own part of input and output, which may be the same memory.
    unsafe {
        keep(buffers.input.add(mine.start), buffers.output.add(mine.start), mine.len());
    }
    Ok(())
}
