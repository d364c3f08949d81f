//! The group on one rank: enqueues calls, ends waits, says goodbye.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossover_core::agreement::StepError;
use crossover_core::backend::{Abort, EnqueueError, Session};
use crossover_core::call::{CallBuffers, CallSig, Mode};
use crossover_core::verdict::Verdict;

use crate::aside::{Aside, Fared};
use crate::board::Record;
use crate::calls::{Made, of_device};
use crate::eligibility::{DESCRIPTOR, PINNED, SYMMETRIC};
use crate::ends::Ends;
use crate::pins::Pins;
use crate::watch::{Bell, Shared};

/// Everything a rank needs for a call.
pub(crate) struct NcclSession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) watch: Option<JoinHandle<()>>,
    /// The stream of the last eager call, unless the engine has left it.
    pub(crate) stream: Option<u64>,
    /// The digest of this rank's calls.
    pub(crate) history: u64,
    pub(crate) pins: Pins,
    /// Was a call captured?
    pub(crate) is_captured: bool,
    /// The process that formed the group: a child that was forked since has no part in it.
    pub(crate) process: u32,
}

impl Session for NcclSession {
    unsafe fn enqueue(
        &mut self,
        algorithm: usize,
        params: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        if !self.shared.ends.is_well() {
            return Err(self.ended("begin", seq));
        }
        self.compare(&Record::of(algorithm, call), seq)?;
        let eager = call.mode == Mode::Eager;
        if eager {
            self.keep_order(buffers.stream, seq)?;
        }
        let name = DESCRIPTOR.algorithms[algorithm].name;
        let config = if name == PINNED { self.pins.of(call, params) } else { None };
        let Shared { comm, maker, windows, .. } = &*self.shared;
        let made = Made { pins: config.as_ref(), ..Made::new(call, buffers) };
        self.shared.last.enter(seq, call.op);
        // SAFETY: the caller's promise about the buffers is passed on as it is; set-up has limited
        // calls through windows to what these hold.
        let enqueued = unsafe {
            match windows {
                Some(windows) if name == SYMMETRIC => windows.make(maker, comm, &made),
                _ => maker.make(comm, &made),
            }
        };
        self.shared.last.leave();
        enqueued.map_err(|trouble| {
            let step = format!("nccl, {}", call.op);
            self.end(trouble.at(&step, seq), &step, seq)
        })?;
        self.is_captured |= !eager;
        if eager {
            self.shared.behind.record(buffers.stream).map_err(|e| {
                self.end(of_device(e, "record the end of the call", seq), "record", seq)
            })?;
            self.shared.last.note(seq, call.op);
        }
        Ok(())
    }

    fn replay(&mut self, graph: u64, seq: u64) -> Result<(), EnqueueError> {
        match self.shared.ends.is_well() {
            true => self.compare(&Record::of_replay(graph), seq),
            false => Err(self.ended("begin", seq)),
        }
    }

    fn leave_stream(&mut self, stream: u64, _: u64) -> Result<(), EnqueueError> {
        // What is behind its last call is recorded. Another stream may get the same number.
        self.stream = self.stream.filter(|last| *last != stream);
        Ok(())
    }

    fn check(&mut self, seq: u64) -> Result<(), EnqueueError> {
        if self.shared.ends.is_well()
            && let Err(error) = self.shared.look()
        {
            return Err(self.end(error, "check", seq));
        }
        match self.shared.ends.is_well() {
            true => Ok(()),
            false => Err(self.ended("check", seq)),
        }
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        let (ends, bell) = (Arc::clone(&self.shared.ends), Arc::clone(&self.shared.bell));
        Arc::new(NcclAbort { ends, bell })
    }

    fn close(&mut self, seq: u64) -> Result<(), EnqueueError> {
        let shared = Arc::clone(&self.shared);
        let rank = shared.maker.rank;
        if !shared.ends.is_well() {
            return Err(self.ended("close", seq));
        }
        let closing = Arc::clone(&shared);
        let begun = Aside::begin("ncclCommFinalize", move || {
            let device = &closing.maker.device;
            device.make_current().map_err(StepError::new)?;
            let deregistered = closing.windows.as_ref().map(|w| w.deregister());
            let closed = closing.comm.close();
            let both = deregistered.unwrap_or(Ok(())).and(closed);
            Ok(both.map_err(StepError::new)?)
        });
        let closed = begun.and_then(|closing| match &shared.ends.board {
            // With a board ranks know of each other without the library.
            Some(board) if self.is_captured => shared.close_beside_graphs(&closing, board),
            _ => closing.wait(shared.deadline),
        });
        if let Some(board) = &shared.ends.board {
            board.close(rank);
        }
        let closed = closed.map_err(|fared| match fared {
            // Somebody ended the group meanwhile, and said why.
            _ if !shared.ends.is_well() => self.ended("close", seq),
            Fared::Late(_) => {
                // Who has closed without a call that others wait in will not make it any more.
                let known = shared.ends.board.as_ref().map(|board| {
                    [board.open(), board.elsewhere(rank)].into_iter().find(|all| !all.is_empty())
                });
                let ranks = known.flatten().unwrap_or_else(|| shared.peers());
                let step = match self.is_captured && shared.ends.board.is_none() {
                    true => "nccl, close (graphs with calls of the group must be gone before)",
                    false => "nccl, close",
                };
                let (step, waited) = (step.to_owned(), shared.deadline);
                self.end(EnqueueError::Late { step, seq, ranks, waited }, "close", seq)
            }
            Fared::Failed(text) => {
                let (step, call) = ("nccl, close".to_owned(), "closing the communicator");
                self.end(EnqueueError::Vendor { step, seq, call, text }, "close", seq)
            }
            Fared::Well => unreachable!("an error is not well"),
        });
        shared.bell.leave();
        // It goes at once, but for an abort that the library takes its time for.
        if closed.is_ok()
            && let Some(watch) = self.watch.take()
        {
            let _ = watch.join();
        }
        closed
    }
}

impl NcclSession {
    /// On one node: do the peers that are there make this call?
    fn compare(&mut self, record: &Record, seq: u64) -> Result<(), EnqueueError> {
        self.history = record.after(self.history);
        let compared = match &self.shared.ends.board {
            Some(board) => board.compare(self.shared.maker.rank, seq, record, self.history),
            None => Ok(()),
        };
        compared.map_err(|e| self.end(e, "begin", seq))
    }

    /// Calls of one communicator run one after the other, whatever streams they are in: the library
    /// demands it, and the windows are shared. Captured calls are ordered by their graph, and a
    /// graph's replays by whoever replays it.
    fn keep_order(&mut self, stream: u64, seq: u64) -> Result<(), EnqueueError> {
        let is_first = self.shared.last.is_none();
        if self.stream.replace(stream) == Some(stream) || is_first {
            return Ok(());
        }
        let device = &self.shared.maker.device;
        let behind = self.shared.behind.handle();
        let ordered = device.make_current().and_then(|()| device.driver().wait(stream, behind));
        let step = "wait for the stream of the call before";
        ordered.map_err(|e| self.end(of_device(e, step, seq), step, seq))
    }

    #[cold]
    fn ended(&self, step: &str, seq: u64) -> EnqueueError {
        self.shared.bell.ring();
        self.shared.ends.cause(step, seq).unwrap_or_else(|| EnqueueError::Aborted {
            step: step.to_owned(),
            seq,
            rank: self.shared.maker.rank,
            // Whoever ended the group died before it had said why.
            reason: "the group ended".to_owned(),
        })
    }

    #[cold]
    fn end(&self, error: EnqueueError, step: &str, seq: u64) -> EnqueueError {
        let first = self.shared.ends.end(error, step, seq);
        self.shared.bell.ring();
        first
    }
}

impl Drop for NcclSession {
    /// The watch aborts what runs and gives memory back; nobody waits for it.
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // A forked child has neither the watch nor a right to what its parent uses.
            std::mem::forget(Arc::clone(&self.shared));
            return;
        }
        let seq = 0;
        let Shared { ends, maker, bell, .. } = &*self.shared;
        let is_closed = ends.board.as_ref().is_some_and(|board| board.is_closed(maker.rank));
        if !is_closed && ends.is_well() {
            let reason = "it dropped the group without closing it".to_owned();
            let (step, rank) = ("drop".to_owned(), maker.rank);
            ends.end(EnqueueError::Aborted { step, seq, rank, reason }, "drop", seq);
        }
        bell.leave();
    }
}

/// Ends the group for all that share a board with this rank, and this rank's kernels. It is the
/// watch that calls the library, which may take its time.
struct NcclAbort {
    ends: Arc<Ends>,
    bell: Arc<Bell>,
}

impl Abort for NcclAbort {
    fn abort(&self, verdict: &Verdict) {
        if self.ends.is_well() {
            self.ends.end(verdict.clone().into_error("abort", 0), "abort", 0);
        }
        self.bell.ring();
    }
}
