//! The group on one rank: enqueues calls, ends waits, says goodbye.

use std::sync::Arc;

use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_core::backend::{Abort, EnqueueError, Session, Watch};
use crossover_core::call::{CallBuffers, CallSig, Dtype, Op, ReduceOp, Split};
use crossover_core::communicator::{AbortHandle, CallError};
use crossover_core::verdict::Verdict;

use crate::health::{Health, TELLS};
use crate::layout::Parts;
use crate::level::Level;

/// Everything a rank needs for a call.
pub(crate) struct HierarchicalSession {
    /// The ranks of its node.
    pub(crate) inside: Level,
    /// The ranks of its number on their nodes.
    pub(crate) across: Level,
    /// What ranks tell with their results.
    pub(crate) health: Health,
}

/// The calls that make one, in their order.
struct Steps<'a> {
    scatter: CallSig<'a>,
    reduce: CallSig<'a>,
    /// Of the word, inside, across and inside again.
    word: [CallSig<'a>; 3],
    gather: CallSig<'a>,
}

impl HierarchicalSession {
    fn parts(&self, call: &CallSig<'_>) -> Parts {
        Parts::new(call.count, self.inside.world())
    }

    fn steps<'a>(&self, call: &CallSig<'_>, parts: &'a Parts) -> Steps<'a> {
        let (_, own) = parts.of(self.inside.rank());
        let split = parts.split();
        let CallSig { dtype, reduce_op, mode, .. } = *call;
        let of = |op, count, split, level: &Level| {
            let contract = level.contract();
            CallSig { op, dtype, reduce_op, count, mode, root: 0, split, contract }
        };
        let of_word = |op, count, level: &Level| {
            let (dtype, reduce_op, contract) = (Dtype::I32, ReduceOp::Sum, level.contract());
            CallSig { op, dtype, reduce_op, count, mode, root: 0, split: Split::Even, contract }
        };
        Steps {
            word: [
                of_word(Op::AllGather, 1, &self.inside),
                of_word(Op::AllReduce, 1, &self.across),
                of_word(Op::AllGather, TELLS, &self.inside),
            ],
            scatter: of(Op::ReduceScatter, call.count, split, &self.inside),
            reduce: of(Op::AllReduce, own, Split::Even, &self.across),
            gather: of(Op::AllGather, parts.largest(), split, &self.inside),
        }
    }

    /// Sends the word of a call behind its parts.
    ///
    /// # Safety
    ///
    /// The stream lives, and the group is closed once its work is done, or dropped.
    unsafe fn tell(
        &self,
        [inside, across, again]: &[CallSig<'_>; 3],
        stream: u64,
        seq: u64,
    ) -> Result<(), EnqueueError> {
        // SAFETY: the words are given back only when the group was closed, and so the stream's calls
        // were done.
        let places = unsafe { self.health.begin(stream) }.map_err(|e| {
            let step = "turn the word of a call".to_owned();
            EnqueueError::Vendor { step, seq, call: "the driver", text: e.to_string() }
        })?;
        let of = |input: u64, output: u64| {
            let (input, output) = (input as *const u8, output as *mut u8);
            CallBuffers { input, output, stream }
        };
        // SAFETY: all places are the words', which have room, and do not overlap.
        unsafe {
            self.inside.run(inside, &of(places.word, places.came), seq)?;
            self.across.run(across, &of(places.kept, places.sum), seq)?;
            self.inside.run(again, &of(places.sum, places.told), seq)
        }
    }

    /// Is what came of the last call that has told right on every node?
    fn prove(&self, seq: u64) -> Result<(), EnqueueError> {
        let Some(nth) = self.health.wrong() else { return Ok(()) };
        let (step, rank) = ("check".to_owned(), self.inside.whole(nth));
        let reason = "on some node a rank of its number gave up before their part was reduced";
        Err(EnqueueError::Aborted { step, seq, rank, reason: reason.to_owned() })
    }

    /// Both groups, whatever the first says; its error goes before.
    fn both(
        &self,
        seq: u64,
        act: impl Fn(&Level) -> Result<(), CallError>,
    ) -> Result<(), EnqueueError> {
        let [inside, across] =
            [&self.inside, &self.across].map(|level| act(level).map_err(|e| level.error(e, seq)));
        inside.and(across)
    }
}

impl Session for HierarchicalSession {
    unsafe fn enqueue(
        &mut self,
        _: usize,
        _: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        // An engine that never checks learns from its next call. The levels may know more.
        if self.health.wrong().is_some() {
            self.check(seq)?;
        }
        let parts = self.parts(call);
        let Steps { scatter, reduce, word, gather } = self.steps(call, &parts);
        let (at, _) = parts.of(self.inside.rank());
        let CallBuffers { input, output, stream } = *buffers;
        let own = output.wrapping_add(at * call.dtype.size());
        // SAFETY: the caller vouches for `call.count` elements at both places. This rank's part lies
        // within them, and it is where each of the three calls allows it: the output of a
        // reduce-scatter in place, if it is in place, the all-reduce's own, and the input of an
        // all-gather in place.
        unsafe {
            self.inside.run(&scatter, &CallBuffers { input, output: own, stream }, seq)?;
            self.across.run(&reduce, &CallBuffers { input: own, output: own, stream }, seq)?;
            if call.count > 0 {
                self.tell(&word, stream, seq)?;
            }
            self.inside.run(&gather, &CallBuffers { input: own, output, stream }, seq)
        }
    }

    fn prepare(&mut self, _: usize, _: &[u64], call: &CallSig<'_>) -> Result<(), EnqueueError> {
        let parts = self.parts(call);
        let Steps { scatter, reduce, word: [first, second, third], gather } =
            self.steps(call, &parts);
        // No call has been made yet: the number is that of none.
        let seq = 0;
        let ready = self.inside.comm.prepare(&[scatter, first, third, gather]);
        ready.map_err(|e| self.inside.error(e, seq))?;
        self.across.comm.prepare(&[reduce, second]).map_err(|e| self.across.error(e, seq))
    }

    fn commit<'g>(&mut self, setup: &mut Setup<'g>) -> Result<(), SetupError> {
        for (level, what) in [
            (&self.inside, "commit what it captured inside its node"),
            (&self.across, "commit what it captured across nodes"),
        ] {
            let comm = Arc::clone(&level.comm);
            setup.step(what, Local::new(comm), |_, comm| comm.commit().map_err(StepError::new))?;
        }
        Ok(())
    }

    fn discard(&mut self) {
        self.inside.comm.discard();
        self.across.comm.discard();
    }

    fn replay(&mut self, graph: u64, seq: u64) -> Result<(), EnqueueError> {
        self.both(seq, |level| level.comm.note_replay(graph))
    }

    fn leave_stream(&mut self, stream: u64, seq: u64) -> Result<(), EnqueueError> {
        self.both(seq, |level| level.comm.leave_stream(stream))
    }

    fn check(&mut self, seq: u64) -> Result<(), EnqueueError> {
        self.both(seq, |level| level.comm.check())?;
        self.prove(seq)
    }

    fn watch(&self) -> Option<Arc<dyn Watch>> {
        // Across nodes a library waits, which tells nothing.
        self.inside.watch()
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        let handles = [&self.inside, &self.across].map(|level| level.comm.abort_handle());
        Arc::new(HierarchicalAbort(handles))
    }

    fn close(&mut self, seq: u64) -> Result<(), EnqueueError> {
        let closed = self.inside.comm.close();
        if let Err(e) = &closed {
            // Its peers across nodes need not wait for it either.
            let told = self.inside.error(e.clone(), seq);
            let verdict = Verdict::of(&told, self.inside.whole(self.inside.rank()));
            self.across.comm.abort_handle().end(&verdict.of_the_whole());
        }
        let across = self.across.comm.close().map_err(|e| self.across.error(e, seq));
        let closed = closed.map_err(|e| self.inside.error(e, seq)).and(across);
        if closed.is_ok() {
            self.health.release();
        }
        closed
    }
}

/// Ends the waits of both groups, and so of every rank that can be reached: those of its node, and
/// those of its number, which end theirs.
struct HierarchicalAbort([AbortHandle; 2]);

impl Abort for HierarchicalAbort {
    fn abort(&self, verdict: &Verdict) {
        let verdict = verdict.clone().of_the_whole();
        for handle in &self.0 {
            handle.end(&verdict);
        }
    }
}
