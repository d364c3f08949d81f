//! Which numbers are drawn: a ring holds thousands, a person looks at the last ones and at those
//! around a divergence.

use std::ops::RangeInclusive;

/// The last records: what fits a screen.
const LAST: u64 = 72;
/// Before and after a number that a verdict is about.
const AROUND: u64 = 12;

/// The stretches of numbers that are drawn, ascending and apart. `newest` is the last number that
/// any rank has, `marks` those of verdicts.
pub(super) fn stretches(newest: u64, marks: &[u64]) -> Vec<RangeInclusive<u64>> {
    let around = |mark: &u64| mark.saturating_sub(AROUND)..=mark.saturating_add(AROUND);
    let last = newest.saturating_sub(LAST - 1)..=newest;
    let mut wanted: Vec<_> = marks.iter().map(around).chain([last]).collect();
    wanted.sort_by_key(|stretch| *stretch.start());
    // A verdict may be about the call after the last, that nobody has come to.
    let end = marks.iter().copied().fold(newest, u64::max);
    let mut stretches: Vec<RangeInclusive<u64>> = Vec::new();
    for stretch in wanted {
        let (start, end) = ((*stretch.start()).max(1), (*stretch.end()).min(end));
        match stretches.last_mut() {
            // A gap that is no wider than its mark would be is drawn.
            Some(before) if start <= before.end() + 2 => {
                *before = *before.start()..=end.max(*before.end());
            }
            _ if start > end => {}
            _ => stretches.push(start..=end),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_and_those_around_a_mark_are_drawn() {
        assert_eq!(stretches(0, &[]), []);
        assert_eq!(stretches(5, &[]), [1..=5]);
        assert_eq!(stretches(1000, &[]), [929..=1000]);
        assert_eq!(stretches(1000, &[40]), [28..=52, 929..=1000]);
        assert_eq!(stretches(1000, &[915]), [903..=1000]);
        assert_eq!(stretches(1000, &[3, 20, 990]), [1..=32, 929..=1000]);
        assert_eq!(stretches(5, &[6]), [1..=6]);
        assert_eq!(stretches(0, &[1]), [1..=1]);
    }
}
