//! One call's steps: fill the own slot, publish, wait, and read everyone's.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crossover_core::backend::EnqueueError;

use crate::header::Header;
use crate::layout::Layout;
use crate::mismatch;
use crate::protocol::{Met, Step, Steps};
use crate::segment::Segment;
use crate::session::HostSession;
use crate::team::Team;
use crate::wait::{Habits, Wait};
use crossover_bootstrap::liveness::Liveness;

/// A call in progress on this rank.
pub(crate) struct Exchange<'a> {
    segment: &'a Segment,
    liveness: &'a Liveness,
    steps: &'a mut Steps,
    habits: &'a Habits,
    header: &'a Header,
    tag: u32,
    /// Rendezvous so far.
    met: u32,
}

/// A step whose slot is published.
#[derive(Clone, Copy)]
pub(crate) struct Given(Step);

impl<'a> Exchange<'a> {
    /// A call, and the session's team.
    // Inlined, so that it is made where it stays: copying what was just written costs more than a
    // tiny call's data.
    #[inline(always)]
    pub(crate) fn new(session: &'a mut HostSession, header: &'a Header) -> (Self, &'a mut Team) {
        let HostSession { segment, liveness, steps, habits, team } = session;
        let exchange =
            Exchange { segment, liveness, steps, habits, tag: header.tag(), header, met: 0 };
        (exchange, team)
    }

    #[inline]
    pub(crate) fn rank(&self) -> u32 {
        self.habits.rank
    }

    #[inline]
    pub(crate) fn world(&self) -> u32 {
        self.layout().world
    }

    /// The ranks but this one, beginning with the next: so that not all read the same rank at once.
    #[inline]
    pub(crate) fn peers(&self) -> impl Iterator<Item = u32> + use<> {
        let (rank, world) = (self.rank(), self.world());
        (1..world).map(move |next| (rank + next) % world)
    }

    /// Most bytes that one step can carry from each rank.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.layout().chunk
    }

    /// Bytes of each of `world` equal regions of a slot.
    #[inline]
    pub(crate) fn region(&self) -> usize {
        self.room() / self.world() as usize / 64 * 64
    }

    /// Fills the own slot and publishes it: `fill` writes at most [`Exchange::room`] bytes. It may
    /// still read the slots of the step before.
    #[inline]
    pub(crate) fn give(&mut self, fill: impl FnOnce(*mut u8)) -> Given {
        let (segment, rank) = (self.segment, self.habits.rank);
        let step = self.steps.begin(self.tag);
        let parity = step.parity();
        if self.met == 0 {
            self.header.write(segment, rank, parity);
        }
        fill(segment.data(rank, parity));
        // Nothing comes between the stores to the head: a peer that polls it would take the line
        // away in the middle, and getting it back takes a trip.
        if self.met == 0 {
            segment.rest(rank, parity).store(self.header.rest(), Relaxed);
            segment.seq(rank, parity).store(self.header.seq(), Relaxed);
        }
        self.steps.publish(step, segment);
        Given(step)
    }

    /// Waits for every peer. Afterwards every rank's slot of this step can be read until the
    /// *next* step is published.
    ///
    /// # Errors
    ///
    /// A peer is lost or late, the group was aborted, or, in the first step, ranks turn out to
    /// have made different calls.
    #[inline]
    pub(crate) fn wait(&mut self, Given(step): Given) -> Result<Slots, EnqueueError> {
        self.met += 1;
        let (header, met) = (self.header, self.met);
        let place = || mismatch::place(header, met);
        let mut wait = Wait::new(self.habits, self.segment, self.liveness, place, header.seq());
        let met = self.steps.meet(step, self.segment, &mut wait)?;
        if met == Met::Unlike || (self.met == 1 && !self.is_same_call(step)) {
            return Err(mismatch::found(self.segment, self.header, self.met, step.parity()));
        }
        Ok(Slots { parity: step.parity() })
    }

    /// Gives and waits.
    ///
    /// # Errors
    ///
    /// As [`Exchange::wait`].
    #[inline]
    pub(crate) fn meet(&mut self, fill: impl FnOnce(*mut u8)) -> Result<Slots, EnqueueError> {
        let given = self.give(fill);
        self.wait(given)
    }

    /// The data of a rank's slot.
    #[inline]
    pub(crate) fn slot(&self, slots: Slots, rank: u32) -> *const u8 {
        self.segment.data(rank, slots.parity)
    }

    fn layout(&self) -> Layout {
        self.segment.layout()
    }

    /// Tags are alike; what they leave out?
    #[inline]
    fn is_same_call(&self, step: Step) -> bool {
        let segment = self.segment;
        // Not the own words: their line is on the way to a peer, and a look would take it back, which
        // costs a call of 8 B as much as its data.
        self.peers().all(|rank| {
            let same = |word: &AtomicU64, mine: u64| word.load(Relaxed) == mine;
            same(segment.seq(rank, step.parity()), self.header.seq())
                && same(segment.rest(rank, step.parity()), self.header.rest())
        })
    }
}

/// The slots that a step filled.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    parity: usize,
}
