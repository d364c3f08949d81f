//! The group on one rank: runs calls, ends waits, says goodbye.

use std::sync::Arc;
use std::time::Duration;

use crossover_backend_host::header::Header;
use crossover_core::backend::{Abort, EnqueueError, Session};
use crossover_core::call::{CallBuffers, CallSig};
use crossover_core::verdict::Verdict;

use crate::collective;
use crate::comm::Comm;
use crate::keeper;
use crate::round::Round;
use crate::staging::Staging;
use crate::watch::{News, Watch};

/// Everything a rank needs for a call.
pub(crate) struct MpiSession {
    pub(crate) comm: Comm,
    pub(crate) watch: Arc<Watch>,
    pub(crate) staging: Staging,
    pub(crate) deadline: Duration,
    pub(crate) chunk: usize,
}

impl Session for MpiSession {
    unsafe fn enqueue(
        &mut self,
        algorithm: usize,
        _params: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        self.begin(seq)?;
        let chunk = self.chunk;
        let mut round = Round::new(self, Header::of_call(algorithm, seq, call));
        // SAFETY: the caller's promise about the buffers is passed on as it is.
        let outcome = unsafe { collective::run(algorithm, chunk, call, buffers, &mut round) };
        outcome.map_err(|e| self.settle(e, seq))
    }

    fn check(&mut self, seq: u64) -> Result<(), EnqueueError> {
        self.begin(seq)
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        Arc::new(MpiAbort(Arc::clone(&self.watch)))
    }

    fn close(&mut self, seq: u64) -> Result<(), EnqueueError> {
        self.begin(seq)?;
        let met = Round::new(self, Header::of_close(seq)).meet(None);
        met.map_err(|e| self.settle(e, seq))?;
        self.watch.say_goodbye();
        let (mut comm, deadline) = (self.comm.copy(), self.deadline);
        // All ranks are here. What is not freed is lost with the process, and there are thousands.
        let freed = keeper::run_apart("MPI_Comm_free", deadline, move || {
            comm.free();
            Ok(())
        });
        if let Err(why) = freed {
            tracing::warn!(target: "crossover::mpi", %why, "a communicator is not freed");
        }
        Ok(())
    }
}

impl MpiSession {
    /// Has the group ended since the last call?
    fn begin(&self, seq: u64) -> Result<(), EnqueueError> {
        match self.watch.look() {
            Some(News::Ended(verdict)) => Err(verdict.into_error("begin", seq)),
            _ => Ok(()),
        }
    }

    /// Tells the peers, or says what ended the group before.
    #[cold]
    fn settle(&self, error: EnqueueError, seq: u64) -> EnqueueError {
        keeper::abandon();
        // An abort, or what a watchdog found, was heard of.
        let is_heard = matches!(error, EnqueueError::Aborted { .. } | EnqueueError::Found(_));
        if is_heard || self.watch.end(Verdict::of(&error, self.watch.rank())) {
            return error;
        }
        // What ended the group in the meantime is what peers are told.
        match self.watch.look() {
            Some(News::Ended(verdict)) => verdict.into_error("settle", seq),
            _ => error,
        }
    }
}

impl Drop for MpiSession {
    /// Closes connections and frees memory, no more. To free the communicator takes all ranks: that of a group
    /// that was not closed stays until the process ends.
    fn drop(&mut self) {
        self.watch.hang_up();
    }
}

/// Ends the waits of every rank, by the connections beside MPI.
struct MpiAbort(Arc<Watch>);

impl Abort for MpiAbort {
    fn abort(&self, verdict: &Verdict) {
        // A group that was closed has nothing under way, and one that ended before has been dealt with.
        if self.0.end(verdict.clone()) {
            keeper::abandon();
        }
    }
}
