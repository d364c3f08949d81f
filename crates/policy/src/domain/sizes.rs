//! Sizes that stand for all sizes.
//!
//! Between two neighbouring bounds (of ranges, and of what there is room for) the same algorithms
//! serve, but for the multiples that they want. These are powers of two: a size is decided by the
//! bounds around it and by the largest of them that divides it. One size for each of these is
//! enough, and the first in number is taken.

use std::collections::BTreeSet;

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

    /// The first size beyond those that it covers.
    fn end(&self) -> u64 {
        self.range.high.unwrap_or(u64::MAX).min(self.room.saturating_add(1))
    }
}

/// Who serves this size; an index into `reach`.
pub(crate) fn decide(reach: &[Reach], bytes: u64) -> Option<usize> {
    reach.iter().position(|r| r.serves(bytes))
}

/// Each of the [`points`], and who serves it.
pub(crate) fn decisions(reach: &[Reach], element: u64) -> Vec<(u64, Option<usize>)> {
    let mut decisions = Vec::new();
    sweep(reach, &points(reach, element), |size, covering| {
        let first = covering.iter().find(|at| size.is_multiple_of(reach[**at].multiple_of));
        decisions.push((size, first.copied()));
    });
    decisions
}

/// Shows sizes, ascending but for a 0 at the very end, with all that cover each: so that a walk over
/// all sizes of many narrow ranges need not ask every range about every size.
pub(crate) fn sweep(reach: &[Reach], sizes: &[u64], mut see: impl FnMut(u64, &BTreeSet<usize>)) {
    // A range that lies beyond its room covers nothing.
    let some = (0..).zip(reach).filter(|(_, r)| r.range.low < r.end());
    let mut starts: Vec<(u64, usize)> = some.map(|(at, r)| (r.range.low, at)).collect();
    let mut ends: Vec<(u64, usize)> =
        starts.iter().map(|(_, at)| (reach[*at].end(), *at)).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
    let mut covering = BTreeSet::new();
    let (zero, ascending): (&[u64], &[u64]) = match sizes.split_last() {
        Some((0, ascending)) => (&[0], ascending),
        _ => (&[], sizes),
    };
    for &size in ascending {
        while let Some((_, at)) = starts.next_if(|(low, _)| *low <= size) {
            covering.insert(at);
        }
        while let Some((_, at)) = ends.next_if(|(end, _)| *end <= size) {
            covering.remove(&at);
        }
        see(size, &covering);
    }
    for &size in zero {
        see(size, &(0..reach.len()).filter(|at| reach[*at].covers(size)).collect());
    }
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
    let multiples = multiples(reach, element);
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

/// What sizes of whole elements are told apart by being multiples of, ascending.
pub(crate) fn multiples(reach: &[Reach], element: u64) -> Vec<u64> {
    let mut multiples: Vec<u64> = reach.iter().map(|r| r.multiple_of.max(element)).collect();
    multiples.push(element);
    multiples.sort_unstable();
    multiples.dedup();
    multiples
}

/// The first size from `from` on that is a multiple of the one and not of the coarser.
pub(super) fn first_multiple(from: u64, multiple: u64, coarser: Option<&u64>) -> Option<u64> {
    let first = from.checked_next_multiple_of(multiple)?;
    match coarser {
        Some(coarser) if first.is_multiple_of(*coarser) => first.checked_add(multiple),
        _ => Some(first),
    }
}
