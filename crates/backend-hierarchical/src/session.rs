//! The group on one rank: enqueues calls, ends waits, says goodbye.

use std::sync::Arc;

use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_core::backend::{Abort, EnqueueError, Session};
use crossover_core::call::{CallBuffers, CallSig, Op, Split};
use crossover_core::communicator::{AbortHandle, CallError};

use crate::layout::Parts;
use crate::level::Level;

/// Everything a rank needs for a call.
pub(crate) struct HierarchicalSession {
    /// The ranks of its node.
    pub(crate) inside: Level,
    /// The ranks of its number on their nodes.
    pub(crate) across: Level,
}

/// The calls that make one, in their order.
struct Steps<'a> {
    scatter: CallSig<'a>,
    reduce: CallSig<'a>,
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
        Steps {
            scatter: of(Op::ReduceScatter, call.count, split, &self.inside),
            reduce: of(Op::AllReduce, own, Split::Even, &self.across),
            gather: of(Op::AllGather, parts.largest(), split, &self.inside),
        }
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
        let parts = self.parts(call);
        let Steps { scatter, reduce, gather } = self.steps(call, &parts);
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
            self.inside.run(&gather, &CallBuffers { input: own, output, stream }, seq)
        }
    }

    fn prepare(&mut self, _: usize, _: &[u64], call: &CallSig<'_>) -> Result<(), EnqueueError> {
        let parts = self.parts(call);
        let Steps { scatter, reduce, gather } = self.steps(call, &parts);
        // No call has been made yet: the number is that of none.
        let seq = 0;
        let ready = self.inside.comm.prepare(&[scatter, gather]);
        ready.map_err(|e| self.inside.error(e, seq))?;
        self.across.comm.prepare(&[reduce]).map_err(|e| self.across.error(e, seq))
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

    fn leave_stream(&mut self, stream: u64, seq: u64) -> Result<(), EnqueueError> {
        self.both(seq, |level| level.comm.leave_stream(stream))
    }

    fn check(&mut self, seq: u64) -> Result<(), EnqueueError> {
        self.both(seq, |level| level.comm.check())
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        let handles = [&self.inside, &self.across].map(|level| level.comm.abort_handle());
        Arc::new(HierarchicalAbort(handles))
    }

    fn close(&mut self, seq: u64) -> Result<(), EnqueueError> {
        let closed = self.inside.comm.close();
        if let Err(e) = &closed {
            // Its peers across nodes need not wait for it either.
            self.across.comm.abort_handle().abort(&e.to_string());
        }
        let across = self.across.comm.close().map_err(|e| self.across.error(e, seq));
        closed.map_err(|e| self.inside.error(e, seq)).and(across)
    }
}

/// Ends the waits of both groups, and so of every rank that can be reached: those of its node, and
/// those of its number, which end theirs.
struct HierarchicalAbort([AbortHandle; 2]);

impl Abort for HierarchicalAbort {
    fn abort(&self, reason: &str) {
        for handle in &self.0 {
            handle.abort(reason);
        }
    }
}
