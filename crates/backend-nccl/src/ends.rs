//! How the group ended, on this rank: the first cause stays, and where ranks share a board it is
//! the same for all of them.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};

use crossover_core::backend::EnqueueError;
use crossover_core::verdict::Verdict;

use crate::board::Board;

/// The first cause.
pub(crate) struct Ends {
    rank: u32,
    pub(crate) board: Option<Arc<Board>>,
    ended: AtomicBool,
    /// What this rank saw first. An error that is its own is told in full here, and to the others as
    /// an abort.
    first: Mutex<Option<EnqueueError>>,
}

impl Ends {
    pub(crate) fn new(rank: u32, board: Option<Arc<Board>>) -> Ends {
        Ends { rank, board, ended: AtomicBool::new(false), first: Mutex::new(None) }
    }

    /// Has nobody ended the group? One or two looks, for every call.
    #[inline]
    pub(crate) fn is_well(&self) -> bool {
        !self.ended.load(Acquire) && self.board.as_ref().is_none_or(|board| board.is_well())
    }

    /// Ends the group with this error, or returns the one that came first. `step` and `seq` are
    /// where this rank is.
    pub(crate) fn end(&self, error: EnqueueError, step: &str, seq: u64) -> EnqueueError {
        if let Some(board) = &self.board {
            board.end(&Verdict::of(&error, self.rank));
        }
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.clone());
        self.ended.store(true, Release);
        self.cause(step, seq).unwrap_or(error)
    }

    /// Why it ended, if it has.
    pub(crate) fn cause(&self, step: &str, seq: u64) -> Option<EnqueueError> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let verdict = self.board.as_ref().and_then(|board| board.verdict(self.rank));
        match (verdict, first) {
            // This rank's own error, which it told the others in short.
            (Some(Verdict::Aborted { rank, .. }), Some(first))
                if rank == self.rank && !matches!(first, EnqueueError::Aborted { .. }) =>
            {
                Some(first)
            }
            (Some(verdict), _) => Some(verdict.into_error(step, seq)),
            (None, first) => first,
        }
    }
}
