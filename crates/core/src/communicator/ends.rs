//! How a group is ended from outside of its calls, and what calls that come back say then: every rank the
//! same, though what travels between them is one sentence.

use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::{Abort, EnqueueError};

/// Ends every wait of a group, on every rank that can be reached, from any thread.
#[derive(Clone)]
pub struct AbortHandle {
    sessions: Arc<[Arc<dyn Abort>]>,
    /// What it is to end with on this rank, if that was said.
    cause: Arc<Mutex<Option<EnqueueError>>>,
}

impl AbortHandle {
    pub(super) fn new(sessions: Arc<[Arc<dyn Abort>]>) -> AbortHandle {
        AbortHandle { sessions, cause: Arc::default() }
    }

    /// Aborts the group. Idempotent; never blocks. Calls that wait, and all later ones, fail with
    /// this rank and reason.
    pub fn abort(&self, reason: &str) {
        for session in self.sessions.iter() {
            session.abort(reason);
        }
    }

    /// Says what the group is about to be aborted for, with this error's sentence as the reason; what was said
    /// first stays. Calls that fail from now on fail with this error on this rank, whatever becomes of them.
    /// On its peers they do if it is a mismatch; with any other, this rank has aborted the group.
    pub fn end_with(&self, error: EnqueueError) {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// What a call has failed of that came back with this error.
    pub(super) fn cause_of(&self, error: EnqueueError) -> EnqueueError {
        let own = self.cause.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let peers = || match &error {
            EnqueueError::Aborted { reason, .. } => mismatch(reason),
            _ => None,
        };
        own.or_else(peers).unwrap_or(error)
    }
}

/// A mismatch that a peer found. What concerns all ranks is no abort of one: it is the same error
/// everywhere, though backends carry its sentence alone.
fn mismatch(reason: &str) -> Option<EnqueueError> {
    let (seq, what) = reason.strip_prefix("call ")?.split_once(": ranks made different calls: ")?;
    Some(EnqueueError::Mismatch { seq: seq.parse().ok()?, what: what.to_owned() })
}

/// A session that panics will not come again: its peers must not wait for it.
pub(super) struct AbortIfPanicking<'a> {
    aborts: &'a AbortHandle,
    /// The caller does already: its own business.
    before: bool,
}

impl<'a> AbortIfPanicking<'a> {
    pub(super) fn new(aborts: &'a AbortHandle) -> Self {
        AbortIfPanicking { aborts, before: std::thread::panicking() }
    }
}

impl Drop for AbortIfPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.before {
            self.aborts.abort("a backend panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aborted(reason: &str) -> EnqueueError {
        let reason = reason.to_owned();
        EnqueueError::Aborted { step: "all_reduce".to_owned(), seq: 9, rank: 2, reason }
    }

    fn handle() -> AbortHandle {
        AbortHandle::new(Arc::from(Vec::new()))
    }

    #[test]
    fn a_mismatch_that_travelled_as_a_reason_is_one_again() {
        let what = "rank 1 has count 9: as one of two, rank 0 has 7".to_owned();
        let found = EnqueueError::Mismatch { seq: 7, what };
        assert_eq!(handle().cause_of(aborted(&found.to_string())), found);
        for other in ["the operator said so", "call x: ranks made different calls: y", ""] {
            assert_eq!(handle().cause_of(aborted(other)), aborted(other));
        }
    }

    #[test]
    fn what_this_rank_found_is_what_its_calls_fail_with() {
        let lost = |rank| EnqueueError::Lost {
            step: "the watchdog".to_owned(),
            seq: 7,
            rank,
            how: "gone".to_owned(),
        };
        let handle = handle();
        assert_eq!(handle.cause_of(lost(1)), lost(1));
        handle.clone().end_with(lost(3));
        handle.end_with(lost(4));
        assert_eq!(handle.cause_of(aborted("whatever came first")), lost(3));
    }
}
