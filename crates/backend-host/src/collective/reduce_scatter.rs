//! Every rank gives a tensor, rank r receives part r of the reduction.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::parts::{Parts, give_parts, piece, windows};
use crate::exchange::Exchange;
use crate::mover::Mover;
use crate::reduce::Sources;

/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn run(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let (rank, world) = (exchange.rank(), exchange.world());
    let parts = Parts::of(call, world);
    let mine = parts.range(rank);
    let region = exchange.region();
    for start in windows(parts.longest(), region) {
        // SAFETY: the input, and regions of a slot.
        let slots = unsafe { give_parts(exchange, mover, parts, buffers.input, start, region) }?;
        let piece = piece(mine.clone(), start, region);
        let sources = Sources::new(world, |peer| {
            let slot = exchange.slot(slots, peer);
            // SAFETY: inside the input, and inside the slot.
            unsafe {
                match peer == rank {
                    true => buffers.input.add(piece.start),
                    false => slot.add(rank as usize * region),
                }
            }
        });
        // SAFETY: every peer has filled this rank's region; inside the output, which in place
        // begins where this rank's part of the input does.
        unsafe {
            let to = buffers.output.add(piece.start - mine.start);
            mover.reduce(call, &sources, to, None, piece.len());
        }
    }
    Ok(())
}
