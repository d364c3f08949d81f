//! The group on one rank: enqueues calls, ends waits, says goodbye.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossover_bootstrap::liveness::Liveness;
use crossover_core::agreement::{Setup, SetupError};
use crossover_core::backend::{Abort, DeviceWait, EnqueueError, Session, Watch};
use crossover_core::call::{CallBuffers, CallSig, Mode};
use crossover_core::verdict::Verdict;
use crossover_device::stream::{Event, Stream};
use crossover_kernel_abi::{Common, code};

use crate::board::{Board, Fingerprint};
use crate::kernels::Kernels;
use crate::launch::{self, Ahead, Enqueue, vendor};
use crate::memory::{Own, Reached};
use crate::rows::{self, Rows};

/// What launches are made of: the same on every rank, but for addresses.
pub(crate) struct Group {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// May kernels come early?
    pub(crate) ahead: Ahead,
    /// What every kernel is told.
    pub(crate) common: Common,
    pub(crate) kernels: Arc<Kernels>,
    pub(crate) own: Arc<Own>,
    pub(crate) rows: Arc<Mutex<Rows>>,
}

impl Group {
    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything a rank needs for a call.
pub(crate) struct IpcSession {
    pub(crate) group: Group,
    /// Peers' arenas, mapped for as long as kernels may touch them.
    pub(crate) peers: Vec<Option<Reached>>,
    pub(crate) liveness: Liveness,
    pub(crate) deadline: Duration,
    /// Where the last eager call is, and what a call on another stream waits for.
    pub(crate) last: Option<Last>,
    pub(crate) order: Event,
    /// The digest of this rank's calls.
    pub(crate) history: u64,
    /// Has every rank said that it is done? Only then is memory given back.
    pub(crate) parted: bool,
    /// The process that formed the group: a child that was forked since has no part in it.
    pub(crate) process: u32,
}

/// Where an eager call was made.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Last {
    /// In this stream, which lives.
    In(u64),
    /// In one that is gone, before `order`.
    Gone,
}

impl Session for IpcSession {
    unsafe fn enqueue(
        &mut self,
        algorithm: usize,
        params: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        self.compare(&Fingerprint::of(algorithm, call), seq)?;
        if call.mode == Mode::Eager {
            self.keep_order(buffers.stream, seq)?;
        }
        let enqueue = Enqueue { group: &self.group, call, buffers, seq };
        // SAFETY: the caller's promise about the buffers is passed on as it is.
        unsafe { launch::run(&enqueue, algorithm, params) }
    }

    fn replay(&mut self, graph: u64, seq: u64) -> Result<(), EnqueueError> {
        self.compare(&Fingerprint::of_replay(graph), seq)
    }

    fn leave_stream(&mut self, stream: u64, seq: u64) -> Result<(), EnqueueError> {
        if self.last != Some(Last::In(stream)) {
            return Ok(());
        }
        let device = &self.group.own.device;
        let marked = device.make_current().and_then(|()| self.order.record(stream));
        marked.map_err(|e| vendor("leave a stream", seq, e))?;
        self.last = Some(Last::Gone);
        Ok(())
    }

    fn check(&mut self, seq: u64) -> Result<(), EnqueueError> {
        let Group { rank, world, own, .. } = &self.group;
        if !own.board.is_well(*rank) {
            return Err(self.ended("check", seq));
        }
        // A kernel that waits for a rank that is gone would take its whole budget to find out.
        let is_lost = |r: &u32| r != rank && self.liveness.is_gone(*r) && !own.board.is_closed(*r);
        match (0..*world).find(is_lost) {
            Some(gone) => Err(self.end(lost("check", seq, gone), "check", seq)),
            None => Ok(()),
        }
    }

    fn commit<'g>(&mut self, setup: &mut Setup<'g>) -> Result<(), SetupError> {
        rows::commit(&self.group.own, &self.group.rows, setup)
    }

    fn discard(&mut self) {
        self.group.rows().discard();
    }

    fn watch(&self) -> Option<Arc<dyn Watch>> {
        Some(Arc::new(IpcWatch { board: Arc::clone(&self.group.own.board), rank: self.group.rank }))
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        Arc::new(IpcAbort(Arc::clone(&self.group.own.board)))
    }

    fn close(&mut self, seq: u64) -> Result<(), EnqueueError> {
        let done = self.await_own(seq);
        let Group { rank, own, .. } = &self.group;
        if done.is_err() || !own.board.is_well(*rank) {
            own.board.close(*rank);
            return done.and_then(|()| Err(self.ended("close", seq)));
        }
        // Peers give their memory back once all have said that nobody maps it any more.
        self.peers.clear();
        self.group.rows().unmap();
        own.board.close(*rank);
        let outcome = self.await_peers(seq);
        self.parted = outcome.is_ok();
        outcome
    }
}

impl IpcSession {
    /// Is the group well, and do the peers that are there make this call?
    #[inline]
    fn compare(&mut self, mine: &Fingerprint, seq: u64) -> Result<(), EnqueueError> {
        let Group { rank, world, own, .. } = &self.group;
        if !own.board.is_well(*rank) {
            return Err(self.ended("begin", seq));
        }
        self.history = mine.after(self.history);
        match own.board.compare(*rank, *world, seq, mine, self.history) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.end(e, "begin", seq)),
        }
    }

    /// Lets go of peers' memory, of which no kernel of this rank will make use, before the group is
    /// one.
    pub(crate) fn unmap(&mut self) {
        self.peers.clear();
        self.parted = true;
    }

    /// Kernels of one group run one after the other, whatever streams they are in: they share
    /// slots. Captured calls are ordered by their graph, and a graph's replays by whoever
    /// replays it.
    #[inline]
    fn keep_order(&mut self, stream: u64, seq: u64) -> Result<(), EnqueueError> {
        match self.last.replace(Last::In(stream)) {
            Some(last) if last != Last::In(stream) => self.follow(last, stream, seq),
            _ => Ok(()),
        }
    }

    #[cold]
    fn follow(&self, last: Last, stream: u64, seq: u64) -> Result<(), EnqueueError> {
        let device = &self.group.own.device;
        let ordered = device.make_current().and_then(|()| match last {
            Last::In(last) => self.order.record(last),
            Last::Gone => Ok(()),
        });
        ordered
            .and_then(|()| device.driver().wait(stream, self.order.handle()))
            .map_err(|e| vendor("wait for the stream of the call before", seq, e))
    }

    /// Until this rank's eager calls are done. Kernels end by themselves: a wait at the latest with its
    /// budget, and once one has ended so, those behind it at once.
    fn await_own(&self, seq: u64) -> Result<(), EnqueueError> {
        let device = &self.group.own.device;
        let failed = |e| vendor("close", seq, e);
        device.make_current().map_err(failed)?;
        let behind;
        let last = match self.last {
            None => return Ok(()),
            Some(Last::In(stream)) => stream,
            Some(Last::Gone) => {
                behind = Stream::new(device).map_err(failed)?;
                behind.wait(&self.order).map_err(failed)?;
                behind.raw()
            }
        };
        let began = Instant::now();
        while !device.driver().is_done(last).map_err(failed)? {
            if began.elapsed() > 2 * self.deadline {
                let text = format!(
                    "the stream of the last call is not done after {:.1?}",
                    began.elapsed()
                );
                return Err(EnqueueError::Vendor {
                    step: "close".to_owned(),
                    seq,
                    call: "waiting",
                    text,
                });
            }
            std::thread::sleep(PATIENCE);
        }
        Ok(())
    }

    /// Until every peer has closed: none of them reads this rank's memory then.
    fn await_peers(&self, seq: u64) -> Result<(), EnqueueError> {
        let Group { rank, world, own, .. } = &self.group;
        let began = Instant::now();
        loop {
            let missing: Vec<u32> = (0..*world).filter(|r| !own.board.is_closed(*r)).collect();
            if missing.is_empty() {
                return Ok(());
            }
            if let Some(ended) = own.board.verdict(*rank, "close", seq) {
                return Err(ended);
            }
            // One that has closed since may go: it is looked for among those that have once more.
            let is_lost = |r: u32| self.liveness.is_gone(r) && !own.board.is_closed(r);
            if let Some(gone) = missing.iter().find(|r| *r != rank && is_lost(**r)) {
                return Err(self.end(lost("close", seq, *gone), "close", seq));
            }
            if began.elapsed() > self.deadline {
                let (step, ranks, waited) = ("close".to_owned(), missing, began.elapsed());
                return Err(self.end(
                    EnqueueError::Late { step, seq, ranks, waited },
                    "close",
                    seq,
                ));
            }
            std::thread::sleep(PATIENCE);
        }
    }

    /// Why the group is not well: the verdict, or what this rank's kernel reported, which becomes
    /// the verdict.
    #[cold]
    fn ended(&self, step: &str, seq: u64) -> EnqueueError {
        let Group { rank, own, .. } = &self.group;
        if let Some(ended) = own.board.verdict(*rank, step, seq) {
            return ended;
        }
        let fault = own.board.fault(*rank).filter(|fault| fault.code != code::ABORTED);
        let Some(fault) = fault else {
            // Whoever ended the group died before it had said why.
            return Verdict::aborted(*rank, "the group ended").into_error(step, seq);
        };
        let (rank, place) = (fault.awaited, fault.step());
        let error = match fault.code {
            code::NOT_COMMITTED => EnqueueError::NotCommitted { seq },
            _ if self.liveness.is_gone(rank) => lost(&place, seq, rank),
            _ => {
                let (ranks, waited) = (vec![rank], self.deadline);
                EnqueueError::Late { step: place.clone(), seq, ranks, waited }
            }
        };
        self.end(error, &place, seq)
    }

    /// Ends the group for all with this error, or returns the one that came first. `step` and `seq`
    /// are this rank's own.
    fn end(&self, error: EnqueueError, step: &str, seq: u64) -> EnqueueError {
        let board = &self.group.own.board;
        board.end(&Verdict::of(&error, self.group.rank));
        match (&error, board.verdict(self.group.rank, step, seq)) {
            (EnqueueError::NotCommitted { .. }, _) | (_, None) => error,
            (_, Some(first)) => first,
        }
    }
}

impl Drop for IpcSession {
    /// Memory that peers may still touch is not given back: they would fault. Nor are kernels
    /// unloaded, which may wait for those that run. All of it goes with the process.
    fn drop(&mut self) {
        let is_forked = std::process::id() != self.process;
        if !self.parted || is_forked {
            if !is_forked {
                let reason = "it dropped the group without closing it";
                self.group.own.board.end(&Verdict::aborted(self.group.rank, reason));
            }
            for peer in self.peers.drain(..) {
                std::mem::forget(peer);
            }
            std::mem::forget(Arc::clone(&self.group.kernels));
            std::mem::forget(Arc::clone(&self.group.own));
            std::mem::forget(Arc::clone(&self.group.rows));
        }
    }
}

/// Between looks at who has closed.
const PATIENCE: Duration = Duration::from_micros(200);

fn lost(step: &str, seq: u64, rank: u32) -> EnqueueError {
    let how = "its process ended, or it dropped the group".to_owned();
    EnqueueError::Lost { step: step.to_owned(), seq, rank, how }
}

/// Ends the waits of every rank's kernels through the board, which it keeps mapped.
struct IpcAbort(Arc<Board>);

impl Abort for IpcAbort {
    fn abort(&self, verdict: &Verdict) {
        self.0.end(verdict);
    }
}

/// Looks at what this rank's kernels tell on the board.
struct IpcWatch {
    board: Arc<Board>,
    rank: u32,
}

impl Watch for IpcWatch {
    fn waits(&self) -> Option<DeviceWait> {
        self.board.waits(self.rank)
    }
}
