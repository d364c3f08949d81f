//! Every rank gives a tensor, rank r receives part r of the reduction.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::parts::{Parts, piece, windows};
use crate::exchange::Exchange;
use crate::reduce::{Sources, Target, reduce};

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
    let mine = parts.range(rank);
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
        let piece = piece(mine.clone(), start, region);
        let sources = Sources::new(world, |peer| {
            let slot = exchange.slot(slots, peer);
            // SAFETY: inside the input, and inside the slot.
            unsafe {
                if peer == rank {
                    buffers.input.add(piece.start)
                } else {
                    slot.add(rank as usize * region)
                }
            }
        });
        // SAFETY: every peer has filled this rank's region. If the output is this rank's part of
        // the input, each element is read before it is written.
        unsafe {
            let to = buffers.output.add(piece.start - mine.start);
            let target = Target { to, also: None, stream: false };
            reduce(call.dtype, call.reduce_op, &sources, &target, piece.len());
        }
    }
    Ok(())
}
