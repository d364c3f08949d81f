//! One call's steps: fill the own slot, publish, wait, and read everyone's.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crossover_core::backend::EnqueueError;

use crate::header::Header;
use crate::mismatch;
use crate::protocol::{Met, Step, Steps};
use crate::ring::Ring;
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
    /// Where data go round; `None` if they go through the slots by parity.
    ring: Option<&'a mut Ring>,
    /// Most bytes that one step can carry from each rank.
    room: usize,
    /// Rendezvous so far.
    met: u32,
}

/// A step whose slot is published.
#[derive(Clone, Copy)]
pub(crate) struct Given(Step, Slots);

impl<'a> Exchange<'a> {
    /// A call, and the session's team. A step carries `window` bytes at most. With `room` for one, its
    /// data go round the ring, if they find place there.
    // Inlined, so that it is made where it stays: copying what was just written costs more than a
    // tiny call's data.
    #[inline(always)]
    pub(crate) fn new(
        session: &'a mut HostSession,
        header: &'a Header,
        room: Option<usize>,
        window: usize,
    ) -> (Self, &'a mut Team) {
        let HostSession { segment, liveness, steps, ring, habits, team, .. } = session;
        let most = segment.layout().chunk.min(window);
        let room = room.map(|room| room.min(most)).filter(|room| ring.takes(*room));
        let (ring, room) = (room.map(|_| ring), room.unwrap_or(most));
        let tag = header.tag();
        let exchange =
            Exchange { segment, liveness, steps, habits, header, tag, ring, room, met: 0 };
        (exchange, team)
    }

    #[inline]
    pub(crate) fn rank(&self) -> u32 {
        self.habits.rank
    }

    #[inline]
    pub(crate) fn world(&self) -> u32 {
        self.segment.layout().world
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
        self.room
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
        let slots = Slots { parity, around: self.ring.as_mut().map(|ring| ring.next(self.room)) };
        if self.met == 0 {
            self.header.write(segment, rank, parity);
        }
        fill(slots.of(segment, rank));
        // Nothing comes between the stores to the head: a peer that polls it would take the line
        // away in the middle, and getting it back takes a trip.
        if self.met == 0 {
            segment.rest(rank, parity).store(self.header.rest(), Relaxed);
            segment.seq(rank, parity).store(self.header.seq(), Relaxed);
        }
        self.steps.publish(step, segment);
        Given(step, slots)
    }

    /// Waits for every peer. Afterwards every rank's slot of this step can be read until the
    /// *next* step is published.
    ///
    /// # Errors
    ///
    /// A peer is lost or late, the group was aborted, or, in the first step, ranks turn out to
    /// have made different calls.
    #[inline]
    pub(crate) fn wait(&mut self, Given(step, slots): Given) -> Result<Slots, EnqueueError> {
        self.met += 1;
        let (header, met) = (self.header, self.met);
        let place = || mismatch::place(header, met);
        let mut wait = Wait::new(self.habits, self.segment, self.liveness, place, header.seq());
        let met = self.steps.meet(step, self.segment, &mut wait)?;
        if met == Met::Unlike || (self.met == 1 && !self.is_same_call(step)) {
            return Err(mismatch::found(self.segment, self.header, self.met, step.parity()));
        }
        Ok(slots)
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
        slots.of(self.segment, rank)
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

/// Where a step's data are: every rank's at the same place of its slots, or of its ring.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    parity: usize,
    around: Option<usize>,
}

impl Slots {
    #[inline]
    fn of(self, segment: &Segment, rank: u32) -> *mut u8 {
        match self.around {
            None => segment.data(rank, self.parity),
            // SAFETY: a step's room is inside the ring.
            Some(at) => unsafe { segment.ring(rank).add(at) },
        }
    }
}
