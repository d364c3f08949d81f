//! Processors that this process may run on.

use rustix::thread::{CpuSet, sched_getaffinity};

/// Their numbers, ascending; none where the kernel does not tell.
pub(crate) fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect()
}

/// Numbers as `taskset` reads them: `0-3,8`.
pub(crate) fn runs(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(usize::to_string).collect(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs_are_what_taskset_reads() {
        let runs = super::runs;
        assert_eq!(runs(&[]), "");
        assert_eq!(runs(&[5]), "5");
        assert_eq!(runs(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
    }
}
