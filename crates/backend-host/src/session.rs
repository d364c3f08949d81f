//! The group on one rank: runs calls, ends waits, says goodbye.

use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

use crossover_core::backend::{Abort, EnqueueError, Session};
use crossover_core::call::{CallBuffers, CallSig, Split};
use crossover_core::verdict::Verdict;

use crate::collective;
use crate::distance::Distance;
use crate::exchange::Exchange;
use crate::header::Header;
use crate::mover::{Mover, Ways};
use crate::protocol::Steps;
use crate::ring::Ring;
use crate::segment::Segment;
use crate::small;
use crate::team::Team;
use crate::verdict;
use crate::wait::Habits;
use crossover_bootstrap::liveness::Liveness;

/// Everything a rank needs for a call. Dropping it closes descriptors, unmaps memory
/// and lets the team go, no more: peers that still wait see it go.
pub(crate) struct HostSession {
    pub(crate) segment: Arc<Segment>,
    pub(crate) liveness: Liveness,
    pub(crate) steps: Steps,
    pub(crate) ring: Ring,
    pub(crate) distance: Distance,
    pub(crate) habits: Habits,
    pub(crate) team: Team,
}

impl Session for HostSession {
    unsafe fn enqueue(
        &mut self,
        algorithm: usize,
        params: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        self.check(seq)?;
        let header = Header::of_call(algorithm, seq, call);
        let layout = self.segment.layout();
        let ways = Ways::of(params, layout.world, self.distance.far, call);
        // SAFETY: the caller's promise about the buffers is passed on as it is.
        let outcome = unsafe {
            match small::takes(algorithm, &ways, layout.chunk, call) {
                true => small::run(self, &header, call, buffers),
                false => self.run(algorithm, (params, ways), &header, call, buffers),
            }
        };
        outcome.map_err(|e| self.settle(e))
    }

    #[inline]
    fn check(&mut self, seq: u64) -> Result<(), EnqueueError> {
        verdict::read(&self.segment, self.habits.rank, "begin", seq).map_or(Ok(()), Err)
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        Arc::new(HostAbort(Arc::clone(&self.segment)))
    }

    fn close(&mut self, seq: u64) -> Result<(), EnqueueError> {
        let met = self.check(seq).and_then(|()| {
            let header = Header::of_close(seq);
            let (mut exchange, _) = Exchange::new(self, &header, None, usize::MAX);
            exchange.meet(|_| ()).map(|_| ())
        });
        let met = met.map_err(|e| self.settle(e));
        // After the rendezvous: a peer that this rank has met is never taken for lost.
        self.segment.closed(self.habits.rank).store(1, Release);
        met
    }
}

impl HostSession {
    #[cold]
    fn settle(&self, error: EnqueueError) -> EnqueueError {
        verdict::settle(&self.segment, self.habits.rank, error)
    }

    /// # Safety
    ///
    /// As for [`Session::enqueue`].
    unsafe fn run(
        &mut self,
        algorithm: usize,
        (params, mut ways): (&[u64], Ways),
        header: &Header,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        let world = self.segment.layout().world;
        if ways.past_if_far && self.distance.is_due(call.bytes()) {
            Distance::time_again(self, header)?;
            ways = Ways::of(params, world, self.distance.far, call);
        }
        let around = ways.circles && matches!(call.split, Split::Even);
        let room = around.then(|| collective::room(algorithm, call, world));
        let (mut exchange, team) = Exchange::new(self, header, room, ways.window);
        let mut mover = Mover::new(team, &ways, call, buffers);
        // SAFETY: the caller's promise about the buffers is passed on as it is.
        unsafe { collective::run(algorithm, call, buffers, &mut exchange, &mut mover) }
    }
}

/// Ends the waits of every rank through the segment, which it keeps mapped.
struct HostAbort(Arc<Segment>);

impl Abort for HostAbort {
    fn abort(&self, verdict: &Verdict) {
        verdict::post(&self.0, verdict);
    }
}
