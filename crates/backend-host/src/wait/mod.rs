//! How a rank waits: it looks a bounded number of times, then gives its processor away, then sleeps
//! until the awaited rank wakes it; and what it looks at meanwhile, so that no wait outlasts its
//! reason.

mod bell;
mod habits;

use std::time::{Duration, Instant};

use crossover_core::backend::EnqueueError;

use crate::protocol::{Board, Patience, Step, sleep_unless};
use crate::segment::Segment;
use crate::verdict;
use crossover_bootstrap::liveness::Liveness;

pub(crate) use self::bell::{SharedBell, register};
pub(crate) use self::habits::Habits;
use self::habits::YIELDING;

/// One wait, for all peers of one step.
pub(crate) struct Wait<'a, S: Fn() -> String> {
    habits: &'a Habits,
    segment: &'a Segment,
    liveness: &'a Liveness,
    /// Where this rank is, in words: made only if it is needed.
    place: S,
    seq: u64,
    looks: u32,
    since: Option<Instant>,
}

impl<'a, S: Fn() -> String> Wait<'a, S> {
    pub(crate) fn new(
        habits: &'a Habits,
        segment: &'a Segment,
        liveness: &'a Liveness,
        place: S,
        seq: u64,
    ) -> Self {
        Wait { habits, segment, liveness, place, seq, looks: 0, since: None }
    }

    #[cold]
    fn slow(&mut self, step: Step) -> Result<(), EnqueueError> {
        let waited = match self.since {
            Some(since) => since.elapsed(),
            None => {
                self.since = Some(Instant::now());
                Duration::ZERO
            }
        };
        if let Some(verdict) = verdict::read(self.segment, self.habits.rank, "", self.seq) {
            return Err(self.here(verdict));
        }
        if waited.is_zero() && self.habits.is_time_to_move() {
            std::thread::sleep(Duration::from_nanos(1));
            return Ok(());
        }
        if waited < YIELDING {
            rustix::thread::sched_yield();
            return Ok(());
        }
        if let Some((rank, how)) = self.lost(step) {
            let step = (self.place)();
            return Err(EnqueueError::Lost { step, seq: self.seq, rank, how });
        }
        if waited >= self.habits.deadline {
            let ranks: Vec<u32> = self.missing(step).collect();
            if !ranks.is_empty() {
                let step = (self.place)();
                return Err(EnqueueError::Late { step, seq: self.seq, ranks, waited });
            }
        }
        self.sleep(step, waited);
        Ok(())
    }

    /// Sleeps until an awaited rank publishes or the group ends; or for a while, to look around.
    fn sleep(&self, step: Step, waited: Duration) {
        let Some(rank) = self.missing(step).next() else { return };
        let is_over = || {
            step.reached(self.segment.arrival(rank, step.parity()))
                || self.segment.verdict_word().is_written()
        };
        sleep_unless(self.segment.bell(rank), || self.habits.fence_all(waited), is_over);
    }

    /// An awaited peer that will never come. A word is looked at again after its owner was found
    /// gone: it may have arrived as the last thing it did.
    fn lost(&self, step: Step) -> Option<(u32, String)> {
        self.missing(step).find_map(|rank| {
            let how = if self.segment.closed(rank).load(std::sync::atomic::Ordering::Acquire) != 0 {
                "it closed the group"
            } else if self.liveness.is_gone(rank) {
                "its process ended, or it dropped the group without closing it"
            } else {
                return None;
            };
            let arrived = step.reached(self.segment.arrival(rank, step.parity()));
            (!arrived).then(|| (rank, how.to_owned()))
        })
    }

    fn missing(&self, step: Step) -> impl Iterator<Item = u32> {
        (0..self.segment.layout().world).filter(move |rank| {
            *rank != self.habits.rank && !step.reached(self.segment.arrival(*rank, step.parity()))
        })
    }

    fn here(&self, verdict: EnqueueError) -> EnqueueError {
        match verdict {
            EnqueueError::Aborted { seq, rank, reason, .. } => {
                EnqueueError::Aborted { step: (self.place)(), seq, rank, reason }
            }
            other => other,
        }
    }
}

impl<S: Fn() -> String> Patience for Wait<'_, S> {
    type Error = EnqueueError;

    #[inline]
    fn pause(&mut self, step: Step) -> Result<(), EnqueueError> {
        let Habits { looks, pauses, .. } = *self.habits;
        if self.looks >= looks + pauses {
            return self.slow(step);
        }
        self.looks += 1;
        if self.looks > looks {
            std::hint::spin_loop();
        }
        Ok(())
    }
}
