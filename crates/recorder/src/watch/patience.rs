//! How long is long? What is usual for such calls says it: a prefill takes seconds that a decode step
//! must not.

use std::collections::HashMap;
use std::time::Duration;

/// The least that anybody is told to be waited for, but where it is soon a hang.
const LEAST: Duration = Duration::from_secs(2);
/// So many times what is usual is unusual.
const TIMES: u32 = 50;
/// Of fewer calls nobody knows what is usual: the first of a job wait for compilers, caches and late ranks, and
/// one slow call in ten would have the next hang told after 50 times that.
const FEW: u64 = 100;
/// So many times the longest of a few is unusual.
const TIMES_OF_FEW: u32 = 8;
/// Waits are counted by powers of two of a millisecond, up to two hours.
const BUCKETS: usize = 24;

/// What kind of call: op, and size by its power of two.
pub(crate) type Kind = (u64, u32);

/// Waits that came to an end, by kind of call.
#[derive(Default)]
pub(crate) struct Patience {
    seen: HashMap<Kind, Waits>,
}

#[derive(Default)]
struct Waits {
    all: u64,
    by_length: [u64; BUCKETS],
}

impl Patience {
    /// A wait for a call of this kind came to an end; `calls` have been made meanwhile.
    pub(crate) fn note(&mut self, kind: Kind, wait: Duration, calls: u64) {
        let waits = self.seen.entry(kind).or_default();
        waits.all += calls.max(1);
        let bucket = (u128::BITS - wait.as_millis().leading_zeros()) as usize;
        waits.by_length[bucket.min(BUCKETS - 1)] += 1;
    }

    /// When a wait for a call of this kind is worth a word: after 50 times the time that 99 of 100 take; of a
    /// kind of which fewer are known, after 8 times the longest of them.
    pub(crate) fn for_a(&self, kind: Kind) -> Duration {
        let unusual =
            |waits: &Waits| waits.nearly_all() * if waits.all < FEW { TIMES_OF_FEW } else { TIMES };
        LEAST.max(self.seen.get(&kind).map_or(Duration::ZERO, unusual))
    }
}

impl Waits {
    /// What 99 of 100 waits did not exceed; nothing, if all of those were shorter than a look can tell.
    fn nearly_all(&self) -> Duration {
        let mut longer = 0;
        for bucket in (0..BUCKETS).rev() {
            longer += self.by_length[bucket];
            if longer * 100 > self.all {
                return Duration::from_millis(1 << bucket);
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECODE: Kind = (0, 17);
    const PREFILL: Kind = (0, 25);

    #[test]
    fn what_is_usual_for_one_kind_is_not_for_another() {
        let mut patience = Patience::default();
        for _ in 0..100 {
            patience.note(PREFILL, Duration::from_millis(700), 1);
        }
        patience.note(DECODE, Duration::ZERO, 10_000);
        assert_eq!(patience.for_a(PREFILL), Duration::from_millis(1024 * 50));
        assert_eq!(patience.for_a(DECODE), LEAST);
        assert_eq!(patience.for_a((3, 3)), LEAST);
    }

    #[test]
    fn one_slow_call_of_a_few_does_not_put_off_the_first_word() {
        let mut patience = Patience::default();
        patience.note(DECODE, Duration::from_millis(130), 1);
        patience.note(DECODE, Duration::ZERO, 20);
        assert_eq!(patience.for_a(DECODE), Duration::from_millis(256 * 8), "and not 12.8 s");
        // A model that compiles in its first call, and again in its second, is left alone.
        patience.note(PREFILL, Duration::from_secs(5), 1);
        assert!(patience.for_a(PREFILL) > Duration::from_secs(60));
        // Once a hundred are known, what is usual is told from what is not.
        patience.note(DECODE, Duration::ZERO, 100);
        assert_eq!(patience.for_a(DECODE), LEAST);
        (0..100).for_each(|_| patience.note(DECODE, Duration::from_millis(130), 1));
        assert_eq!(patience.for_a(DECODE), Duration::from_millis(256 * 50));
    }

    #[test]
    fn one_long_wait_in_a_thousand_changes_nothing() {
        let mut patience = Patience::default();
        patience.note(DECODE, Duration::ZERO, 1000);
        patience.note(DECODE, Duration::from_secs(100), 1);
        assert_eq!(patience.for_a(DECODE), LEAST);
    }
}
