//! Sizes that stand for all sizes.
//!
//! Between two neighbouring bounds (of ranges, and of what there is room for) the same algorithms
//! serve, but for the multiples that they want. These are powers of two: a size is decided by the
//! bounds around it and by the largest of them that divides it. One size for each of these is
//! enough, and the first in number is taken.

use super::book::Reach;

impl Reach {
    /// Does it serve this size?
    pub(crate) fn serves(&self, bytes: u64) -> bool {
        self.covers(bytes) && bytes.is_multiple_of(self.multiple_of)
    }

    /// Does it serve this size, or would it if that were a multiple of what it wants?
    pub(crate) fn covers(&self, bytes: u64) -> bool {
        self.range.contains(bytes) && bytes <= self.room
    }
}

/// Who serves this size; an index into `reach`.
pub(crate) fn decide(reach: &[Reach], bytes: u64) -> Option<usize> {
    reach.iter().position(|r| r.serves(bytes))
}

/// Every size, from 0 on, at which the set of those that cover it can change.
pub(crate) fn cuts(reach: &[Reach]) -> Vec<u64> {
    let bounds = reach.iter().flat_map(|r| {
        let beyond_room = r.room.checked_add(1);
        [Some(r.range.low), r.range.high, beyond_room].into_iter().flatten()
    });
    let mut cuts: Vec<u64> = std::iter::once(0).chain(bounds).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// One size for each way in which a call of elements of `element` bytes can be decided: ascending,
/// and 0 at the very end, since a message had better name any other. Sizes that are no whole number
/// of elements are left out: no call has them.
pub(crate) fn points(reach: &[Reach], element: u64) -> Vec<u64> {
    let mut multiples: Vec<u64> = reach.iter().map(|r| r.multiple_of.max(element)).collect();
    multiples.push(element);
    multiples.sort_unstable();
    multiples.dedup();
    let mut cuts = cuts(reach);
    cuts[0] = 1; // 0 has an answer of its own
    cuts.dedup();
    let ends = cuts.iter().skip(1).copied().chain([u64::MAX]);
    let mut points = Vec::new();
    for (&from, end) in cuts.iter().zip(ends) {
        for (at, &multiple) in multiples.iter().enumerate() {
            let coarser = multiples.get(at + 1);
            points.extend(first_multiple(from, multiple, coarser).filter(|size| *size < end));
        }
    }
    points.sort_unstable();
    points.dedup();
    points.push(0);
    points
}

/// The first size from `from` on that is a multiple of the one and not of the coarser.
fn first_multiple(from: u64, multiple: u64, coarser: Option<&u64>) -> Option<u64> {
    let first = from.checked_next_multiple_of(multiple)?;
    match coarser {
        Some(coarser) if first.is_multiple_of(*coarser) => first.checked_add(multiple),
        _ => Some(first),
    }
}
