//! How a group ends when it ends badly, as it travels between ranks: the first that gives up says
//! why, and every other repeats that instead of a story of its own.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::EnqueueError;

/// An [`EnqueueError`] that concerns all ranks. An abort's step and call are the reader's own,
/// since who aborts may not be in a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl Verdict {
    /// Most bytes of an abort's reason that travel.
    pub const LONGEST_REASON: usize = 1024; // size: fits a page beside the rest

    /// The abort of a group by `rank`; a long reason is cut.
    pub fn aborted(rank: u32, reason: &str) -> Verdict {
        let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= Self::LONGEST_REASON;
        let reason = reason.char_indices().take_while(fits).map(|(_, c)| c).collect();
        Verdict::Aborted { rank, reason }
    }

    /// What of an error concerns all ranks; `None` for one that is this rank's alone, and for an
    /// abort, which all know of already.
    pub fn of(error: &EnqueueError) -> Option<Verdict> {
        Some(match error.clone() {
            EnqueueError::Late { step, seq, ranks, waited } => {
                Verdict::Late { step, seq, ranks, waited }
            }
            EnqueueError::Lost { step, seq, rank, how } => Verdict::Lost { step, seq, rank, how },
            EnqueueError::Mismatch { seq, what } => Verdict::Mismatch { seq, what },
            _ => return None,
        })
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
        }
    }
}
