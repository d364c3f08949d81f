//! How a group is ended from outside of its calls.

use std::sync::Arc;

use crate::backend::Abort;
use crate::verdict::Verdict;

/// Ends every wait of a group, on every rank that can be reached, from any thread.
#[derive(Clone)]
pub struct AbortHandle {
    rank: u32,
    sessions: Arc<[Arc<dyn Abort>]>,
}

impl AbortHandle {
    pub(super) fn new(rank: u32, sessions: Arc<[Arc<dyn Abort>]>) -> AbortHandle {
        AbortHandle { rank, sessions }
    }

    /// Aborts the group. Idempotent; never blocks. Calls that wait, and all later ones, fail with
    /// this rank and reason.
    pub fn abort(&self, reason: &str) {
        self.end(&Verdict::aborted(self.rank, reason));
    }

    /// Ends the group for what somebody found, as [`AbortHandle::abort`] does: calls fail with this, on
    /// every rank the same, unless it has ended for something else before.
    pub fn end(&self, verdict: &Verdict) {
        for session in self.sessions.iter() {
            session.abort(verdict);
        }
    }
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
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<Verdict>>);

    impl Abort for Told {
        fn abort(&self, verdict: &Verdict) {
            self.0.lock().expect("nobody panics").push(verdict.clone());
        }
    }

    #[test]
    fn every_session_is_told_who_ended_the_group_and_why() {
        let told = [Arc::new(Told::default()), Arc::new(Told::default())];
        let sessions = told.iter().map(|told| Arc::clone(told) as Arc<dyn Abort>);
        let handle = AbortHandle::new(2, sessions.collect());
        let mismatch = Verdict::Mismatch { seq: 7, what: "rank 1 has count 9".to_owned() };
        handle.clone().end(&mismatch);
        handle.abort("the operator said so");
        let all = [mismatch, Verdict::aborted(2, "the operator said so")];
        assert!(told.iter().all(|told| *told.0.lock().expect("nobody panics") == all));
    }
}
