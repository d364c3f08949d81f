//! What is said of many samples in a few numbers.

/// Times of one call, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    pub(super) min: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
    pub(super) iterations: usize,
}

impl Times {
    /// From nanoseconds, at least one sample. A quantile is the least sample that this part of all
    /// samples does not exceed: a number that was measured, none in between.
    pub(super) fn of(mut nanoseconds: Vec<u64>) -> Times {
        nanoseconds.sort_unstable();
        let last = nanoseconds.len() - 1;
        let at = |index: usize| nanoseconds[index.min(last)] as f64 / 1e3;
        let quantile = |percent: usize| at((nanoseconds.len() * percent).div_ceil(100) - 1);
        Times {
            min: at(0),
            p50: quantile(50),
            p99: quantile(99),
            max: at(last),
            iterations: nanoseconds.len(),
        }
    }
}

/// 10^9 bytes per second; 0 where there is nothing to move.
pub(super) fn gigabytes_per_second(bytes: u64, microseconds: f64) -> f64 {
    if microseconds > 0.0 { bytes as f64 / microseconds / 1e3 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let times = Times::of((1..=100).rev().map(|us| us * 1000).collect());
        assert_eq!((times.min, times.p50, times.p99, times.max), (1.0, 50.0, 99.0, 100.0));
        let times = Times::of(vec![3000, 1000, 2000]);
        assert_eq!((times.min, times.p50, times.p99, times.max), (1.0, 2.0, 3.0, 3.0));
        let times = Times::of(vec![1500]);
        assert_eq!((times.min, times.p50, times.p99, times.max), (1.5, 1.5, 1.5, 1.5));
    }

    #[test]
    fn bandwidth_is_decimal() {
        assert_eq!(gigabytes_per_second(1_000_000, 1000.0), 1.0);
        assert_eq!(gigabytes_per_second(0, 0.0), 0.0);
    }
}
