//! Lists of processors as Linux and `taskset` write them: `0-3,8`.

/// Ascending numbers as such a list.
pub fn list(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(usize::to_string).collect(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// The numbers of such a list; `None` if it is none, or names more than a kernel can have. A node
/// without processors has an empty one.
pub(super) fn parse(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for run in text.trim().split(',').filter(|run| !run.is_empty()) {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last > HIGHEST {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Eight times what Linux can be built for.
const HIGHEST: usize = 65_535;

#[cfg(test)]
mod tests {
    use super::{list, parse};

    #[test]
    fn lists_are_what_taskset_reads() {
        for (numbers, text) in [
            (&[] as &[usize], ""),
            (&[5], "5"),
            (&[0, 1, 2, 3, 8, 10, 11], "0-3,8,10-11"),
            (&[60, 61, 180], "60-61,180"),
        ] {
            assert_eq!(list(numbers), text);
            assert_eq!(parse(&format!("{text}\n")).as_deref(), Some(numbers));
        }
    }

    #[test]
    fn what_is_no_list_is_none() {
        for text in ["x", "1-", "-1", "1-2-3", "0-99999999999", "1;2"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
