//! One call's steps: fill the own slot, publish, wait, and read everyone's.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crossover_core::backend::EnqueueError;
use rustix::io::Errno;

use crate::header::Header;
use crate::layout::{Layout, MAX_WORLD};
use crate::liveness::Liveness;
use crate::memory;
use crate::mismatch;
use crate::protocol::{Met, Step, Steps};
use crate::reach::Reach;
use crate::segment::Segment;
use crate::session::HostSession;
use crate::team::Team;
use crate::wait::{Habits, Wait};

/// A call in progress on this rank.
pub(crate) struct Exchange<'a> {
    segment: &'a Segment,
    liveness: &'a Liveness,
    steps: &'a mut Steps,
    habits: &'a Habits,
    reach: Option<&'a Reach>,
    scratch: &'a mut [u8],
    /// Most bytes of a slot's data that a step fills.
    window: usize,
    header: &'a Header,
    tag: u32,
    /// Rendezvous so far.
    met: u32,
}

/// A step whose slot is published.
#[derive(Clone, Copy)]
pub(crate) struct Given(Step);

impl<'a> Exchange<'a> {
    /// A call whose steps fill at most `window` bytes of a slot; and the session's team.
    // Inlined, so that it is made where it stays: copying what was just written costs more than a
    // tiny call's data.
    #[inline(always)]
    pub(crate) fn new(
        session: &'a mut HostSession,
        header: &'a Header,
        window: usize,
    ) -> (Self, &'a mut Team) {
        let HostSession { segment, liveness, steps, habits, reach, scratch, team } = session;
        let exchange = Exchange {
            window: window.min(segment.layout().chunk) / 64 * 64,
            segment,
            liveness,
            steps,
            habits,
            reach: reach.as_ref(),
            scratch,
            tag: header.tag(),
            header,
            met: 0,
        };
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
        self.window
    }

    /// Bytes of each of `world` equal regions of a slot.
    #[inline]
    pub(crate) fn region(&self) -> usize {
        self.window / self.world() as usize / 64 * 64
    }

    /// Fills the own slot and publishes it: `fill` writes at most [`Exchange::room`] bytes. It may still read the slots of the step before.
    #[inline]
    pub(crate) fn give(&mut self, fill: impl FnOnce(*mut u8)) -> Given {
        let (segment, rank) = (self.segment, self.habits.rank);
        let step = self.steps.begin(self.tag);
        let parity = step.parity();
        fill(segment.data(rank, parity));
        if self.met == 0 {
            segment.rest(rank, parity).store(self.header.rest(), Relaxed);
            segment.seq(rank, parity).store(self.header.seq(), Relaxed);
            self.header.write(segment, rank, parity);
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

    /// Gives two addresses and waits for those of every rank.
    ///
    /// # Errors
    ///
    /// As [`Exchange::wait`].
    pub(crate) fn meet_at(
        &mut self,
        input: *const u8,
        output: *mut u8,
    ) -> Result<impl Fn(u32) -> (u64, u64) + use<>, EnqueueError> {
        let mine = [input as u64, output as u64];
        // SAFETY: a slot that no one else touches now, aligned to 64.
        let slots = self.meet(|own| unsafe { own.cast::<[u64; 2]>().write(mine) })?;
        let mut all = [[0; 2]; MAX_WORLD as usize];
        for (rank, told) in (0..self.world()).zip(&mut all) {
            // SAFETY: every rank has written two addresses to its slot.
            *told = unsafe { self.slot(slots, rank).cast::<[u64; 2]>().read() };
        }
        Ok(move |rank| all[rank as usize].into())
    }

    /// Copies from a peer's own memory.
    ///
    /// # Errors
    ///
    /// The peer is gone, or has no such memory.
    ///
    /// # Safety
    ///
    /// `len` bytes can be written at `to`.
    pub(crate) unsafe fn read(
        &self,
        peer: u32,
        from: u64,
        to: *mut u8,
        len: usize,
    ) -> Result<(), EnqueueError> {
        let reach = self.reach.expect("chosen only where the group has it");
        // SAFETY: the caller's.
        unsafe { reach.read(peer, from, to, len) }.map_err(|errno| {
            let (step, seq) = (mismatch::place(self.header, self.met), self.header.seq());
            match errno {
                Errno::SRCH => {
                    let how = "its process ended while its memory was read".to_owned();
                    EnqueueError::Lost { step, seq, rank: peer, how }
                }
                errno => EnqueueError::Vendor {
                    step,
                    seq,
                    call: "process_vm_readv",
                    text: format!("{len} B of rank {peer}: {errno}"),
                },
            }
        })
    }

    /// Memory of this rank's own: a region for each rank, and the bytes of a region.
    pub(crate) fn scratch(&mut self) -> (*mut u8, usize) {
        let most = self.scratch.len().min(self.window);
        (self.scratch.as_mut_ptr(), most / self.world() as usize / 64 * 64)
    }

    /// Ends the call: takes possession of the cache line that the next one will publish with, while
    /// nobody waits for it. The peers have read it, a step ago, and a store to a line that others
    /// hold takes as long as a trip to them.
    #[inline]
    pub(crate) fn claim(&self) {
        memory::claim(self.segment.inline(self.habits.rank, self.steps.next_parity()));
    }

    fn layout(&self) -> Layout {
        self.segment.layout()
    }

    /// Tags are alike; what they leave out?
    #[inline]
    fn is_same_call(&self, step: Step) -> bool {
        let segment = self.segment;
        (0..self.world()).all(|rank| {
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
