//! Sets of sizes and of counts, for systems in which the first that matches wins.

use crossover_core::policy::ByteRange;

/// From a least to a greatest size, both inside, as most other systems write it.
pub(super) fn inclusive(least: u64, greatest: u64) -> ByteRange {
    ByteRange { low: least, high: greatest.checked_add(1) }
}

/// One beyond every size, so that an open end compares like any other.
const BEYOND: u128 = 1 << 64;

fn end(range: ByteRange) -> u128 {
    range.high.map_or(BEYOND, u128::from)
}

pub(super) fn intersect(a: ByteRange, b: ByteRange) -> bool {
    u128::from(a.low) < end(b) && u128::from(b.low) < end(a)
}

/// What is left of some ranges without another.
pub(super) fn without(ranges: &[ByteRange], cut: ByteRange) -> Vec<ByteRange> {
    let mut left = Vec::new();
    for range in ranges {
        if !intersect(*range, cut) {
            left.push(*range);
            continue;
        }
        if range.low < cut.low {
            left.push(ByteRange { low: range.low, high: Some(cut.low) });
        }
        if let Some(low) = cut.high
            && end(cut) < end(*range)
        {
            left.push(ByteRange { low, high: range.high });
        }
    }
    left
}

/// From a least to a greatest number of ranks or nodes, both inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) low: u32,
    pub(super) high: u32,
}

impl Counts {
    pub(super) const ANY: Counts = Counts { low: 1, high: u32::MAX };

    pub(super) fn intersect(self, other: Counts) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    pub(super) fn covers(self, other: Counts) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// The part in `other`, if any, and the parts beside it.
    pub(super) fn split(self, other: Counts) -> (Option<Counts>, Vec<Counts>) {
        if !self.intersect(other) {
            return (None, vec![self]);
        }
        let mut beside = Vec::new();
        if self.low < other.low {
            beside.push(Counts { low: self.low, high: other.low - 1 });
        }
        if other.high < self.high {
            beside.push(Counts { low: other.high + 1, high: self.high });
        }
        let inside = Counts { low: self.low.max(other.low), high: self.high.min(other.high) };
        (Some(inside), beside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_range() {
        let all = [ByteRange::ANY];
        let last = inclusive(u64::MAX, u64::MAX);
        assert_eq!(without(&all, inclusive(0, u64::MAX)), []);
        assert_eq!(without(&all, inclusive(0, 9)), [ByteRange { low: 10, high: None }]);
        assert_eq!(without(&all, last), [ByteRange { low: 0, high: Some(u64::MAX) }]);
        let middle = without(&[inclusive(0, 99)], inclusive(10, 19));
        assert_eq!(middle, [inclusive(0, 9), inclusive(20, 99)]);
        assert_eq!(without(&middle, inclusive(5, 25)), [inclusive(0, 4), inclusive(26, 99)]);
        assert_eq!(without(&middle, inclusive(100, 200)), middle);
    }

    #[test]
    fn counts_are_split_at_both_ends() {
        let counts = Counts { low: 2, high: 8 };
        let (inside, beside) = counts.split(Counts { low: 4, high: 6 });
        assert_eq!(inside, Some(Counts { low: 4, high: 6 }));
        assert_eq!(beside, [Counts { low: 2, high: 3 }, Counts { low: 7, high: 8 }]);
        assert_eq!(counts.split(Counts { low: 9, high: 9 }), (None, vec![counts]));
        let (inside, beside) = Counts::ANY.split(Counts { low: 1, high: u32::MAX });
        assert_eq!((inside, beside), (Some(Counts::ANY), vec![]));
    }
}
