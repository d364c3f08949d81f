//! What the ops do that read their peers' own memory: `all_gather`, `broadcast` and
//! `reduce_scatter`, and the reduction that `all_reduce` shares. Each begins with a rendezvous in
//! which ranks tell where their buffers are, and ends with one after which nobody reads them.

use std::ops::Range;

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use super::parts::{Parts, piece, windows};
use crate::exchange::Exchange;
use crate::mover::Mover;
use crate::reduce::Sources;

/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn all_gather(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let parts = Parts::of(call, exchange.world());
    let mine = parts.range(exchange.rank());
    let at = exchange.meet_at(buffers.input, buffers.output)?;
    for peer in exchange.peers() {
        let theirs = parts.range(peer);
        // SAFETY: inside the output, and no part that a peer reads.
        unsafe {
            exchange.read(peer, at(peer).0, buffers.output.add(theirs.start), theirs.len())?;
        }
    }
    // SAFETY: the own part of input and output, which may be the same memory.
    unsafe { mover.keep(buffers.input, buffers.output.add(mine.start), mine.len()) };
    exchange.meet(|_| ())?;
    Ok(())
}

/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn broadcast(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let (total, root) = (call.bytes() as usize, call.root);
    let at = exchange.meet_at(buffers.input, buffers.output)?;
    // SAFETY: the whole output; the root's may be its input.
    unsafe {
        match exchange.rank() == root {
            true => mover.keep(buffers.input, buffers.output, total),
            false => exchange.read(root, at(root).0, buffers.output, total)?,
        }
    }
    exchange.meet(|_| ())?;
    Ok(())
}

/// # Safety
///
/// As for [`super::run`].
pub(crate) unsafe fn reduce_scatter(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let mine = Parts::of(call, exchange.world()).range(exchange.rank());
    let at = exchange.meet_at(buffers.input, buffers.output)?;
    // SAFETY: the output. In place, it is the own part of the input, which no peer reads.
    unsafe {
        reduce_from(exchange, mover, call, buffers.input, |peer| at(peer).0, mine, buffers.output)?;
    }
    exchange.meet(|_| ())?;
    Ok(())
}

/// Reduces a part of every rank's input to `to`, of which the peers' are read piece by piece.
///
/// # Safety
///
/// `part` of `input` can be read, and as much be written at `to`, which may be that part.
pub(crate) unsafe fn reduce_from(
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
    call: &CallSig<'_>,
    input: *const u8,
    input_of: impl Fn(u32) -> u64,
    part: Range<usize>,
    to: *mut u8,
) -> Result<(), EnqueueError> {
    let (rank, world) = (exchange.rank(), exchange.world());
    let (scratch, width) = exchange.scratch();
    for start in windows(part.len(), width) {
        let piece = piece(part.clone(), start, width);
        for peer in exchange.peers() {
            // SAFETY: a region of the scratch of its own.
            unsafe {
                let to = scratch.add(peer as usize * width);
                exchange.read(peer, input_of(peer) + piece.start as u64, to, piece.len())?;
            }
        }
        // SAFETY: inside the input, and the regions.
        let source = |peer| unsafe {
            if peer == rank { input.add(piece.start) } else { scratch.add(peer as usize * width) }
        };
        let sources = Sources::new(world, source);
        // SAFETY: every source has a piece; inside the part of the output.
        unsafe {
            mover.reduce(call, &sources, to.add(start), None, piece.len());
        }
    }
    Ok(())
}
