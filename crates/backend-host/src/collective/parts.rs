//! How tensors are cut: into ranks' parts, and into windows that fit a slot. All in bytes.

use std::ops::Range;

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallSig, Op, Split};

use crate::exchange::{Exchange, Slots};
use crate::mover::Mover;

/// The ranks' parts of the larger buffer of an op that has one.
#[derive(Clone, Copy)]
pub(crate) enum Parts<'a> {
    Even(usize),
    PerRank { counts: &'a [usize], element: usize },
}

impl<'a> Parts<'a> {
    pub(crate) fn of(call: &CallSig<'a>, world: u32) -> Self {
        let element = call.dtype.size();
        match (call.split, call.op) {
            (Split::PerRank(counts), _) => Parts::PerRank { counts, element },
            (Split::Even, Op::AllGather) => Parts::Even(call.count * element),
            (Split::Even, _) => Parts::Even(call.count / world as usize * element),
        }
    }

    /// Where rank `rank`'s part lies.
    pub(crate) fn range(self, rank: u32) -> Range<usize> {
        let rank = rank as usize;
        let (start, len) = match self {
            Parts::Even(part) => (rank * part, part),
            Parts::PerRank { counts, element } => {
                (counts[..rank].iter().sum::<usize>() * element, counts[rank] * element)
            }
        };
        start..start + len
    }

    /// The largest part.
    pub(crate) fn longest(self) -> usize {
        match self {
            Parts::Even(part) => part,
            Parts::PerRank { counts, element } => {
                counts.iter().max().copied().unwrap_or(0) * element
            }
        }
    }
}

/// The piece of `part` that lies in the window at `start` of `width`, which may be empty.
pub(crate) fn piece(part: Range<usize>, start: usize, width: usize) -> Range<usize> {
    let from = (part.start + start).min(part.end);
    from..(from + width).min(part.end)
}

/// Starts of the windows of `width` over `total`: at least one, since ranks meet over nothing too.
pub(crate) fn windows(total: usize, width: usize) -> impl Iterator<Item = usize> {
    (0..total.max(1)).step_by(width)
}

/// Rank `rank`'s shard of a window of `len` bytes: whole cache lines, but for the last.
pub(crate) fn shard(len: usize, rank: u32, world: u32) -> Range<usize> {
    let each = len.div_ceil(world as usize).next_multiple_of(64);
    let at = |rank: u32| (rank as usize * each).min(len);
    at(rank)..at(rank + 1)
}

/// One step in which every rank gives each peer its part's piece in the window at `start`: for
/// rank r in region r of the slot.
///
/// # Safety
///
/// `input` can be read wherever a part lies.
#[inline]
pub(crate) unsafe fn give_parts(
    exchange: &mut Exchange<'_>,
    mover: &mut Mover<'_>,
    parts: Parts<'_>,
    input: *const u8,
    start: usize,
    region: usize,
) -> Result<Slots, EnqueueError> {
    let peers = exchange.peers();
    exchange.meet(|own| {
        for peer in peers {
            let theirs = piece(parts.range(peer), start, region);
            // SAFETY: inside the input, and a region of a slot that no one else touches now.
            unsafe {
                let to = own.add(peer as usize * region);
                mover.fill(input.add(theirs.start), to, theirs.len());
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_a_window_once() {
        for world in 1..=16 {
            for len in [0, 1, 63, 64, 65, 127, 1000, 4096, 262_144] {
                let mut next = 0;
                for rank in 0..world {
                    let shard = shard(len, rank, world);
                    assert_eq!(shard.start, next);
                    next = shard.end;
                }
                assert_eq!(next, len);
            }
        }
    }

    #[test]
    fn pieces_cover_a_part_once() {
        for (part, width) in [(10..10, 4), (10..13, 4), (10..14, 4), (10..30, 7)] {
            let pieces: Vec<_> =
                windows(part.len(), width).map(|at| piece(part.clone(), at, width)).collect();
            let covered: Vec<usize> = pieces.iter().cloned().flatten().collect();
            assert_eq!(covered, part.clone().collect::<Vec<_>>());
            assert!(!pieces.is_empty());
        }
    }
}
