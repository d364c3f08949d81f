//! One call's steps: fill the own slot, meet, and read everyone's.

use crossover_core::backend::EnqueueError;

use crate::eligibility::DESCRIPTOR;
use crate::header::Header;
use crate::layout::Layout;
use crate::mismatch;
use crate::protocol::Step;
use crate::segment::Segment;
use crate::session::HostSession;
use crate::verdict;
use crate::wait::Wait;

/// A call in progress on this rank.
pub(crate) struct Exchange<'a> {
    session: &'a mut HostSession,
    header: Header,
    /// Rendezvous so far.
    met: u32,
}

impl<'a> Exchange<'a> {
    /// # Errors
    ///
    /// The group has ended before.
    pub(crate) fn new(session: &'a mut HostSession, header: Header) -> Result<Self, EnqueueError> {
        match verdict::read(&session.segment, "begin", header.seq()) {
            None => Ok(Exchange { session, header, met: 0 }),
            Some(ended) => Err(ended),
        }
    }

    pub(crate) fn rank(&self) -> u32 {
        self.session.habits.rank
    }

    pub(crate) fn world(&self) -> u32 {
        self.layout().world
    }

    pub(crate) fn layout(&self) -> Layout {
        self.session.segment.layout()
    }

    /// One step: `fill` writes the own slot, of [`Layout::chunk`] bytes; what it returns is handed
    /// on. Afterwards every rank's slot of this step can be read until the *next* step has been
    /// filled: `fill` may still read the slots of the step before.
    ///
    /// # Errors
    ///
    /// A peer is lost or late, the group was aborted, or, in the first step, ranks turn out to
    /// have made different calls.
    pub(crate) fn meet(&mut self, fill: impl FnOnce(*mut u8)) -> Result<Slots, EnqueueError> {
        let HostSession { segment, liveness, steps, habits } = &mut *self.session;
        let step = steps.begin();
        let rank = habits.rank;
        fill(segment.data(rank, step.parity()));
        if self.met == 0 {
            self.header.write(segment, rank, step.parity());
        }
        self.met += 1;
        let (header, met) = (self.header, self.met);
        let place = || place(header, met);
        steps.meet(
            step,
            &**segment,
            &mut Wait::new(habits, segment, liveness, place, header.seq()),
        )?;
        if met == 1 {
            compare(segment, header, step)?;
        }
        Ok(Slots { parity: step.parity() })
    }

    /// The data of a rank's slot.
    pub(crate) fn slot(&self, slots: Slots, rank: u32) -> *const u8 {
        self.session.segment.data(rank, slots.parity)
    }
}

/// The slots that a step filled.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    parity: usize,
}

#[inline]
fn compare(segment: &Segment, mine: Header, step: Step) -> Result<(), EnqueueError> {
    let of = |rank| Header::read(segment, rank, step.parity());
    let world = segment.layout().world;
    if (0..world).all(|rank| of(rank) == mine) {
        return Ok(());
    }
    let headers: Vec<Header> = (0..world).map(of).collect();
    Err(mismatch::explain(&headers, place(mine, 1), mine.seq()))
}

fn place(header: Header, met: u32) -> String {
    let algorithm = mismatch::algorithm_in_words(header.algorithm());
    let op = mismatch::op_in_words(header.op());
    format!("{}/{algorithm} {op}, rendezvous {met}", DESCRIPTOR.id)
}
