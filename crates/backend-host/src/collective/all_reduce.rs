//! Every rank gives a tensor, every rank receives the reduction.

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::parts::{shard, windows};
use crate::exchange::Exchange;
use crate::reduce::{Sources, Target, reduce};

/// One rendezvous a window: every rank reduces everything.
///
/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn one_shot(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    mut exchange: Exchange<'_>,
) -> Result<(), EnqueueError> {
    let (total, width) = (call.bytes() as usize, exchange.layout().chunk);
    for start in windows(total, width) {
        let len = width.min(total - start);
        let slots = exchange.meet(|own| {
            // SAFETY: a window of the input, and a slot that no one else touches now.
            unsafe { own.copy_from_nonoverlapping(buffers.input.add(start), len) };
        })?;
        let sources = Sources::new(exchange.world(), |rank| exchange.slot(slots, rank));
        // SAFETY: every rank has filled `len` bytes of its slot; a window of the output.
        unsafe {
            let to = buffers.output.add(start);
            let target = Target { to, also: None, stream: false };
            reduce(call.dtype, call.reduce_op, &sources, &target, len);
        }
    }
    Ok(())
}

/// Two rendezvous a window: every rank reduces its shard, then every rank collects the shards.
///
/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn two_shot(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    mut exchange: Exchange<'_>,
) -> Result<(), EnqueueError> {
    let (total, width) = (call.bytes() as usize, exchange.layout().chunk);
    let (rank, world) = (exchange.rank(), exchange.world());
    for start in windows(total, width) {
        let len = width.min(total - start);
        let mine = shard(len, rank, world);
        // SAFETY: a window of the input, and one of the output.
        let (input, output) = unsafe { (buffers.input.add(start), buffers.output.add(start)) };
        let given = exchange.meet(|own| {
            for peer in (0..world).filter(|peer| *peer != rank) {
                let theirs = shard(len, peer, world);
                // SAFETY: inside the window, and inside a slot that no one else touches now.
                unsafe { copy(input.add(theirs.start), own.add(theirs.start), theirs.len()) };
            }
        })?;
        let sources = Sources::new(world, |peer| {
            let whole = if peer == rank { input } else { exchange.slot(given, peer) };
            // SAFETY: inside the window or the slot.
            unsafe { whole.add(mine.start) }
        });
        let reduced = exchange.meet(|own| {
            let target = Target { to: own, also: None, stream: false };
            // SAFETY: every peer has filled this shard of its slot, and still leaves it alone; the
            // own shard of the input has not been overwritten, since the output is written last.
            unsafe { reduce(call.dtype, call.reduce_op, &sources, &target, mine.len()) };
        })?;
        for peer in 0..world {
            let theirs = shard(len, peer, world);
            let result = exchange.slot(reduced, peer);
            // SAFETY: every rank has put its shard at the beginning of its slot.
            unsafe { copy(result, output.add(theirs.start), theirs.len()) };
        }
    }
    Ok(())
}

/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`], of bytes.
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { to.copy_from_nonoverlapping(from, len) };
}
