//! Every rank gives a part, every rank receives all parts in rank order.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::parts::{Parts, piece, windows};
use crate::exchange::Exchange;
use crate::mover::Mover;

/// # Safety
///
/// As for [`super::run`].
#[inline]
pub(crate) unsafe fn run(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let width = exchange.room();
    let parts = Parts::of(call, exchange.world());
    let mine = parts.range(exchange.rank());
    for start in windows(parts.longest(), width) {
        let piece_of_mine = piece(0..mine.len(), start, width);
        // SAFETY: inside this rank's part, of the input and of the output.
        let (input, to) = unsafe {
            let at = piece_of_mine.start;
            (buffers.input.add(at), buffers.output.add(mine.start + at))
        };
        let mut kept = false;
        let given = exchange.give(|own| {
            // SAFETY: inside the input and the output, which may be the same memory, and a slot that
            // no one else touches now.
            kept = unsafe { mover.fill_and_keep(input, own, to, piece_of_mine.len()) };
        });
        if !kept {
            // SAFETY: as above. While the peers are on their way.
            unsafe { mover.keep(input, to, piece_of_mine.len()) };
        }
        let slots = exchange.wait(given)?;
        for peer in exchange.peers() {
            let theirs = piece(parts.range(peer), start, width);
            let slot = exchange.slot(slots, peer);
            // SAFETY: the peer has filled as much of its slot; inside the output.
            unsafe { mover.take(slot, buffers.output.add(theirs.start), theirs.len()) };
        }
    }
    Ok(())
}
