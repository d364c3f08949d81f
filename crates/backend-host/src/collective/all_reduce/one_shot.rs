//! One rendezvous a window: every rank reduces everything.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use crate::collective::parts::windows;
use crate::exchange::Exchange;
use crate::mover::Mover;
use crate::reduce::Sources;

/// # Safety
///
/// As for [`crate::collective::run`].
#[inline]
pub(crate) unsafe fn run(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let (total, width, rank) = (call.bytes() as usize, exchange.room(), exchange.rank());
    for start in windows(total, width) {
        let len = width.min(total - start);
        // SAFETY: a window of the input, and one of the output.
        let (input, to) = unsafe { (buffers.input.add(start), buffers.output.add(start)) };
        let slots = exchange.meet(|own| {
            // SAFETY: inside the input, and a slot that no one else touches now.
            unsafe { mover.fill(input, own, len) };
        })?;
        let source = |peer| if peer == rank { input } else { exchange.slot(slots, peer) };
        let sources = Sources::new(exchange.world(), source);
        // SAFETY: every rank has filled `len` bytes of its slot; a window of the output, which may
        // be the same one of the input.
        unsafe { mover.reduce(call, &sources, to, None, len) };
    }
    Ok(())
}
