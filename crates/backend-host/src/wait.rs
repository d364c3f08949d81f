//! How a rank waits: a bounded number of pauses, then giving its processor away, then sleeping in
//! growing steps; and what it looks at meanwhile, so that no wait outlasts its reason.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crossover_core::backend::EnqueueError;

use crate::liveness::Liveness;
use crate::protocol::{Board, Patience, Step};
use crate::segment::Segment;
use crate::verdict;

/// What does not change from wait to wait.
pub(crate) struct Habits {
    pub(crate) rank: u32,
    /// Pauses before the first system call.
    pub(crate) spins: u32,
    /// The longest wait.
    pub(crate) deadline: Duration,
    /// Waits that were not over after the pauses.
    long: Cell<u32>,
}

impl Habits {
    /// Ranks that have a processor each are worth spinning for, a few microseconds: what a small
    /// call takes. Longer costs more than it gains, since two ranks can find themselves on one
    /// processor all the same, and then each wait lasts as long as the spinning. Where they must
    /// share, spinning only keeps the awaited rank from running. It affects nothing but the
    /// waiting, so ranks need not agree.
    pub(crate) fn new(rank: u32, world: u32, processors: usize, deadline: Duration) -> Self {
        let spins = if world as usize <= processors { 100 } else { 16 };
        Habits { rank, spins, deadline, long: Cell::new(0) }
    }

    /// Two ranks that yield to each other on one processor never sleep, and a scheduler places a
    /// thread when it wakes: so now and then, after pauses that did not help, a rank naps for a
    /// moment and wakes where there is room.
    fn is_time_to_move(&self) -> bool {
        self.long.set(self.long.get().wrapping_add(1));
        self.long.get().is_multiple_of(256)
    }
}

/// One wait, for all peers of one step.
pub(crate) struct Wait<'a, S: Fn() -> String> {
    habits: &'a Habits,
    segment: &'a Segment,
    liveness: &'a Liveness,
    /// Where this rank is, in words: made only if it is needed.
    place: S,
    seq: u64,
    pauses: u32,
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
        Wait { habits, segment, liveness, place, seq, pauses: 0, since: None }
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
        if let Some(verdict) = verdict::read(self.segment, "", self.seq) {
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
        // A nap is an eighth of the wait so far: late by at most that much, and by a millisecond.
        let left = self.habits.deadline.saturating_sub(waited);
        std::thread::sleep((waited / 8).min(LONGEST_NAP).min(left));
        Ok(())
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

const YIELDING: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(1);

impl<S: Fn() -> String> Patience for Wait<'_, S> {
    type Error = EnqueueError;

    #[inline]
    fn pause(&mut self, step: Step) -> Result<(), EnqueueError> {
        if self.pauses < self.habits.spins {
            self.pauses += 1;
            std::hint::spin_loop();
            return Ok(());
        }
        self.slow(step)
    }
}
