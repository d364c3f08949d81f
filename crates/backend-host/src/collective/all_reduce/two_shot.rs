//! Every rank reduces its shard of each window, then every rank collects the shards. A rank gives
//! its input of one window in the same step as its results of the window before, so that there is
//! one rendezvous a window, and one more.

use std::ops::Range;

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallBuffers, CallSig};

use crate::collective::parts::{shard, windows};
use crate::exchange::{Exchange, Slots};
use crate::mover::Mover;
use crate::reduce::Sources;

/// # Safety
///
/// As for [`crate::collective::run`].
pub(crate) unsafe fn run(
    call: &CallSig<'_>,
    buffers: &CallBuffers,
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
) -> Result<(), EnqueueError> {
    let (total, width) = (call.bytes() as usize, width(exchange.room(), exchange.world()));
    let mut given: Option<Given> = None;
    let last = std::iter::once(None);
    for window in windows(total, width).map(|at| Some(at..(at + width).min(total))).chain(last) {
        // Behind the input of this window, if there is one.
        let results = if window.is_some() { width } else { 0 };
        let (rank, world) = (exchange.rank(), exchange.world());
        let slots = exchange.meet(|own| {
            if let Some(window) = &window {
                // SAFETY: a window of the input, which no result has overwritten yet, and a slot
                // that no one else touches now.
                unsafe {
                    let input = buffers.input.add(window.start);
                    give(mover, input, window.len(), own, (rank, world));
                }
            }
            if let Some(Given { window, sources }) = &given {
                let mine = shard(window.len(), rank, world);
                // SAFETY: inside the output and the own slot.
                let (to, also) =
                    unsafe { (buffers.output.add(window.start + mine.start), own.add(results)) };
                // SAFETY: every peer has filled this shard of its slot, and leaves it alone until
                // this step is published; the own shard of the input is whole until now.
                unsafe { mover.reduce(call, sources, to, Some(also), mine.len()) };
            }
        })?;
        if let Some(Given { window, .. }) = given {
            for peer in exchange.peers() {
                let theirs = shard(window.len(), peer, world);
                // SAFETY: every rank has put its results there; inside the output.
                unsafe {
                    let result = exchange.slot(slots, peer).add(results);
                    let to = buffers.output.add(window.start + theirs.start);
                    mover.take(result, to, theirs.len());
                }
            }
        }
        given = window.map(|window| Given::new(window, buffers.input, exchange, slots));
    }
    Ok(())
}

/// A window that every rank has given, and where the ranks' contributions to the own shard are.
struct Given {
    window: Range<usize>,
    sources: Sources,
}

impl Given {
    fn new(window: Range<usize>, input: *const u8, exchange: &Exchange<'_>, slots: Slots) -> Self {
        let rank = exchange.rank();
        let mine = shard(window.len(), rank, exchange.world());
        let sources = Sources::new(exchange.world(), |peer| {
            // SAFETY: inside the input, and inside the slot.
            unsafe {
                match peer == rank {
                    true => input.add(window.start + mine.start),
                    false => exchange.slot(slots, peer).add(mine.start),
                }
            }
        });
        Given { window, sources }
    }
}

/// Puts the peers' shards of a window of `len` bytes into the own slot, each at its place.
///
/// # Safety
///
/// `len` bytes can be read at `input` and written at `own`.
unsafe fn give(
    mover: &mut Mover<'_>,
    input: *const u8,
    len: usize,
    own: *mut u8,
    (rank, world): (u32, u32),
) {
    for peer in (0..world).filter(|peer| *peer != rank) {
        let theirs = shard(len, peer, world);
        // SAFETY: inside the window and the slot.
        unsafe { mover.fill(input.add(theirs.start), own.add(theirs.start), theirs.len()) };
    }
}

/// The widest window whose input and largest shard of results fit into a slot together.
fn width(room: usize, world: u32) -> usize {
    let lines = room / 64;
    (lines - lines.div_ceil(world as usize + 1)) * 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::MAX_WORLD;

    #[test]
    fn a_window_and_the_results_of_another_fit() {
        for world in 2..=MAX_WORLD {
            for room in [1024, 1088, 4096, 65_600, 262_144] {
                let width = width(room, world);
                assert!(width + shard(width, 0, world).len() <= room, "{room} B, {world} ranks");
                assert!(width >= 64 && width.is_multiple_of(64));
            }
        }
    }
}
