//! How long a rank is patient in which way.

use std::cell::Cell;
use std::time::Duration;

use super::bell;

/// What does not change from wait to wait.
pub(crate) struct Habits {
    pub(crate) rank: u32,
    /// Looks without anything between them, then as many with a pause each, before the first
    /// system call.
    pub(super) looks: u32,
    pub(super) pauses: u32,
    /// The longest wait.
    pub(crate) deadline: Duration,
    /// Are there more ranks than processors?
    shared: bool,
    /// Is a publisher sure to see that someone sleeps?
    heard: Cell<bool>,
    /// Waits that were not over after the pauses.
    long: Cell<u32>,
}

impl Habits {
    /// Ranks that have a processor each are worth spinning for, a few microseconds: what a small
    /// call takes. Longer costs more than it gains, since two ranks can find themselves on one
    /// processor all the same, and then each wait lasts as long as the spinning. Where they must
    /// share, spinning only keeps the awaited rank from running. It affects nothing but the
    /// waiting, so ranks need not agree.
    ///
    /// `fenced`: every rank takes part in the barrier that makes it hear of sleepers.
    pub(crate) fn new(
        rank: u32,
        world: u32,
        processors: usize,
        fenced: bool,
        deadline: Duration,
    ) -> Self {
        let shared = world as usize > processors;
        let (looks, pauses) = if shared { (32, 0) } else { (64, 100) };
        let (heard, long) = (Cell::new(fenced), Cell::new(0));
        Habits { rank, looks, pauses, deadline, shared, heard, long }
    }

    /// Makes a sleeper's mark seen by whoever publishes, and says how long it may sleep after it
    /// has waited for so long: until the next look at whether its peers still live, and not
    /// longer than the deadline allows.
    pub(super) fn fence_all(&self, waited: Duration) -> Duration {
        // Refused once is refused for good: a filter was set up after the group.
        self.heard.set(self.heard.get() && bell::fence_all());
        let nap = if self.heard.get() {
            waited.min(LONGEST_SLEEP)
        } else {
            // Nobody may wake it: late by at most an eighth of the wait, and by a millisecond.
            (waited / 8).min(LONGEST_NAP)
        };
        nap.min(self.deadline.saturating_sub(waited))
    }

    /// Two ranks that yield to each other on one processor while the other is free never sleep,
    /// and a scheduler places a thread when it wakes: so now and then, after pauses that did not
    /// help, a rank naps for a moment and wakes where there is room. A nap costs more than fifty
    /// microseconds, so not where there is no room.
    pub(super) fn is_time_to_move(&self) -> bool {
        self.long.set(self.long.get().wrapping_add(1));
        !self.shared && self.long.get().is_multiple_of(256)
    }
}

/// How long a rank gives its processor away and comes back, before it sleeps. Several times what it
/// takes to fall asleep and be woken, or ranks that share processors would wait for one another's
/// waking, and so all come to sleep in every call.
pub(super) const YIELDING: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// A peer that died wakes nobody.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_short_where_nobody_may_wake_it() {
        let nap = |fenced: bool, waited_ms: u64| {
            let deadline = Duration::from_millis(1000);
            Habits::new(0, 2, 2, fenced, deadline).fence_all(Duration::from_millis(waited_ms))
        };
        assert_eq!(nap(false, 4), Duration::from_micros(500));
        assert_eq!(nap(false, 400), Duration::from_millis(1));
        // Registered by the first: a process need not be, to fence those that are.
        assert!(bell::register(), "this kernel has no expedited barriers");
        assert_eq!(nap(true, 4), Duration::from_millis(4));
        assert_eq!(nap(true, 400), Duration::from_millis(50));
        assert_eq!(nap(true, 990), Duration::from_millis(10), "not past the deadline");
    }
}
