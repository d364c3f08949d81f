//! The root gives a tensor, every rank receives it.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::parts::windows;
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
    let (total, width) = (call.bytes() as usize, exchange.room());
    let is_root = exchange.rank() == call.root;
    for start in windows(total, width) {
        let len = width.min(total - start);
        // SAFETY: a window of the input, and one of the output.
        let (input, output) = unsafe { (buffers.input.add(start), buffers.output.add(start)) };
        let given = exchange.give(|own| {
            if is_root {
                // SAFETY: inside the input, and a slot that no one else touches now.
                unsafe { mover.fill(input, own, len) };
            }
        });
        if is_root {
            // SAFETY: input and output may be the same memory. While the peers are on their way.
            unsafe { mover.keep(input, output, len) };
        }
        let slots = exchange.wait(given)?;
        if !is_root {
            // SAFETY: the root has filled `len` bytes of its slot; inside the output.
            unsafe { mover.take(exchange.slot(slots, call.root), output, len) };
        }
    }
    Ok(())
}
