//! The root gives a tensor, every rank receives it.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::keep;
use super::parts::windows;
use crate::exchange::Exchange;

/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn run(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    mut exchange: Exchange<'_>,
) -> Result<(), EnqueueError> {
    let (total, width) = (call.bytes() as usize, exchange.layout().chunk);
    let is_root = exchange.rank() == call.root;
    for start in windows(total, width) {
        let len = width.min(total - start);
        let slots = exchange.meet(|own| {
            if is_root {
                // SAFETY: a window of the input, and a slot that no one else touches now.
                unsafe { own.copy_from_nonoverlapping(buffers.input.add(start), len) };
            }
        })?;
        if !is_root {
            let slot = exchange.slot(slots, call.root);
            // SAFETY: the root has filled `len` bytes of its slot; a window of the output.
            unsafe { buffers.output.add(start).copy_from_nonoverlapping(slot, len) };
        }
    }
    if is_root {
        // SAFETY: the whole tensor; input and output may be the same memory.
        unsafe { keep(buffers.input, buffers.output, total) };
    }
    Ok(())
}
