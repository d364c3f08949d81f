//! How work is cut for a team.

use std::ops::Range;

/// Part `part` of `parts` of so many bytes: parts follow each other, differ by at most one cache
/// line, and begin at its multiples, so that no two threads write to one line if the bytes begin at
/// a line themselves. With fewer lines than parts the last ones are empty.
///
/// ```
/// use crossover_backend_host::team::cut;
///
/// assert_eq!([0, 1].map(|part| cut(200, part, 2)), [0..128, 128..200]);
/// ```
///
/// # Panics
///
/// If `part` is not below `parts`.
pub fn cut(bytes: usize, part: usize, parts: usize) -> Range<usize> {
    assert!(part < parts, "part {part} of {parts}");
    let lines = bytes.div_ceil(LINE);
    let (each, over) = (lines / parts, lines % parts);
    let start = |part: usize| (part * each + part.min(over)).saturating_mul(LINE).min(bytes);
    start(part)..start(part + 1)
}

/// Bytes of a cache line.
const LINE: usize = 64;

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn parts_are_whole_lines_but_for_the_last() {
        let parts = |bytes, parts| (0..parts).map(|n| cut(bytes, n, parts)).collect::<Vec<_>>();
        assert_eq!(parts(640, 3), [0..256, 256..448, 448..640]);
        assert_eq!(parts(1, 2), [0..1, 1..1]);
        assert_eq!(parts(0, 2), [0..0, 0..0]);
        assert_eq!(parts(129, 4), [0..64, 64..128, 128..129, 129..129]);
        assert_eq!(cut(usize::MAX, 0, 1), 0..usize::MAX);
    }

    #[test]
    fn parts_cover_everything_once_and_evenly() {
        for bytes in (0..2000).chain([65_536, 65_537, 1_000_003]) {
            for parts in 1..=9 {
                let cuts: Vec<_> = (0..parts).map(|part| cut(bytes, part, parts)).collect();
                assert_eq!((cuts[0].start, cuts[parts - 1].end), (0, bytes));
                assert!(cuts.windows(2).all(|pair| pair[0].end == pair[1].start), "{cuts:?}");
                let lines = cuts.iter().map(|cut| cut.len().div_ceil(64));
                let (least, most) = (lines.clone().min().unwrap(), lines.max().unwrap());
                assert!(most - least <= 1, "{cuts:?}");
                assert!(cuts.iter().all(|cut| cut.start % 64 == 0 || cut.is_empty()), "{cuts:?}");
            }
        }
    }
}
