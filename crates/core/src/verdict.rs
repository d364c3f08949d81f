//! How a group ends when it ends badly, as it travels between ranks: the first that gives up says
//! why, and every other repeats that instead of a story of its own.

mod encoding;

use std::time::Duration;

use crate::backend::EnqueueError;

/// An [`EnqueueError`] that concerns all ranks. An abort's step and call are the reader's own,
/// since who aborts may not be in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A rank aborted the group.
    Aborted {
        /// Which.
        rank: u32,
        /// Why.
        reason: String,
    },
    /// Ranks did not come in time.
    Late {
        /// During what.
        step: String,
        /// Of which call.
        seq: u64,
        /// Which ranks.
        ranks: Vec<u32>,
        /// For how long they were awaited.
        waited: Duration,
    },
    /// A rank's process is gone.
    Lost {
        /// During what.
        step: String,
        /// Of which call.
        seq: u64,
        /// Which rank.
        rank: u32,
        /// What was seen.
        how: String,
    },
    /// Ranks made different calls.
    Mismatch {
        /// Which call.
        seq: u64,
        /// What differs.
        what: String,
    },
    /// The group that this one is a part of has ended: its verdict, by its own ranks and calls.
    Whole(Box<Verdict>),
    /// The watchdog found it: its text is a whole sentence, as in [`EnqueueError::Found`].
    Found(Box<Verdict>),
}

impl Verdict {
    /// Most bytes of an abort's reason that travel.
    pub const LONGEST_REASON: usize = 1024; // size: fits a page beside the rest

    /// The abort of a group by `rank`; a long reason is cut.
    pub fn aborted(rank: u32, reason: &str) -> Verdict {
        let reason = cut(reason, Self::LONGEST_REASON).to_owned();
        Verdict::Aborted { rank, reason }
    }

    /// What peers of `rank`, which failed with this error, are told. An error that is this rank's alone,
    /// as one of a vendor, is an abort by it for the others.
    pub fn of(error: &EnqueueError, rank: u32) -> Verdict {
        match error.clone() {
            EnqueueError::Aborted { rank, reason, .. } => Verdict::aborted(rank, &reason),
            EnqueueError::Late { step, seq, ranks, waited } => {
                Verdict::Late { step, seq, ranks, waited }
            }
            EnqueueError::Lost { step, seq, rank, how } => Verdict::Lost { step, seq, rank, how },
            EnqueueError::Mismatch { seq, what } => Verdict::Mismatch { seq, what },
            EnqueueError::Whole(error) => Verdict::of(&error, rank).of_the_whole(),
            EnqueueError::Found(error) => Verdict::Found(Box::new(Verdict::of(&error, rank))),
            own => Verdict::aborted(rank, &own.to_string()),
        }
    }

    /// The same, for a group that is a part of the one that has ended.
    #[must_use]
    pub fn of_the_whole(self) -> Verdict {
        Verdict::Whole(Box::new(self))
    }

    /// The error of a reader who is at `step` of call `seq`.
    pub fn into_error(self, step: &str, seq: u64) -> EnqueueError {
        match self {
            Verdict::Aborted { rank, reason } => {
                EnqueueError::Aborted { step: step.to_owned(), seq, rank, reason }
            }
            Verdict::Late { step, seq, ranks, waited } => {
                EnqueueError::Late { step, seq, ranks, waited }
            }
            Verdict::Lost { step, seq, rank, how } => EnqueueError::Lost { step, seq, rank, how },
            Verdict::Mismatch { seq, what } => EnqueueError::Mismatch { seq, what },
            Verdict::Whole(whole) => EnqueueError::Whole(Box::new(whole.into_error(step, seq))),
            Verdict::Found(found) => EnqueueError::Found(Box::new(found.into_error(step, seq))),
        }
    }
}

/// As much of a text as fits into so many bytes.
fn cut(text: &str, most: usize) -> &str {
    let is_end = |end: &usize| text.is_char_boundary(*end);
    &text[..(0..=most.min(text.len())).rev().find(is_end).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_all_stays_what_it_is_and_the_rest_is_an_abort() {
        let lost = |step: &str| EnqueueError::Lost {
            step: step.to_owned(),
            seq: 7,
            rank: 3,
            how: "gone".to_owned(),
        };
        assert_eq!(Verdict::of(&lost("run"), 1).into_error("elsewhere", 9), lost("run"));
        let whole = EnqueueError::Whole(Box::new(lost("run")));
        assert_eq!(Verdict::of(&whole, 1).into_error("elsewhere", 9), whole);
        let found = EnqueueError::Found(Box::new(lost("run")));
        assert_eq!(Verdict::of(&found, 1).into_error("elsewhere", 9), found);
        // An abort that was heard of is passed on as it is: by the same rank, for the same reason.
        let aborted = |step: &str, seq| {
            let (step, reason) = (step.to_owned(), "enough".to_owned());
            EnqueueError::Aborted { step, seq, rank: 2, reason }
        };
        assert_eq!(Verdict::of(&aborted("run", 7), 1).into_error("here", 9), aborted("here", 9));
        let own = EnqueueError::NotCommitted { seq: 7 };
        assert_eq!(Verdict::of(&own, 1), Verdict::aborted(1, &own.to_string()));
    }
}
