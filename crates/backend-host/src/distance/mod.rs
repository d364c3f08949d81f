//! Whether ranks are far from one another.
//!
//! Processors that share a last-level cache pass a line on inside of it; others have to fetch it over
//! what connects their caches, and take it back the same way. Which it is decides how a rank best gives
//! many bytes (see [`crate::mover::PARAMS`]), and what a system tells of its caches does not: a virtual
//! machine's processors lie where its host lets them, and threads that are bound to none where the kernel
//! does, for a while. So a line's way is timed when the group forms and now and then afterwards: from rank
//! 0 to every other one, since ranks that share a cache with one share it with all.

mod way;

use std::sync::atomic::Ordering::Release;

use crossover_core::backend::EnqueueError;

use self::way::AGAIN;
pub(crate) use self::way::{FORMING, are_far};
use crate::exchange::Exchange;
use crate::header::Header;
use crate::session::HostSession;

/// How many bytes ranks give between two timings: at the least 4 ms, of which a timing takes 4 us a peer
/// where ranks are near and 31 where they are far.
const BETWEEN: u64 = 128 << 20; // size: of the inputs of calls, together
/// How many until a change is looked at again, before it counts: some last for milliseconds only.
const UNTIL_SURE: u64 = 16 << 20; // size: as above

/// What a group knows of its ranks' distance. All of it is the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distance {
    /// Ranks are far from one another.
    pub(crate) far: bool,
    /// Nobody has set it, and each rank has a processor: it was timed, and will be.
    is_timed: bool,
    /// The last timing found otherwise.
    is_doubted: bool,
    /// Bytes that are given until the next one.
    left: u64,
}

impl Distance {
    /// As the settings have it or rank 0 has found it; `None` where neither knows.
    pub(crate) fn new(far: Option<bool>, is_timed: bool) -> Distance {
        Distance { far: far.unwrap_or(false), is_timed, is_doubted: false, left: BETWEEN }
    }

    /// A call to which distance matters gives so many bytes: is it to be timed again before?
    #[inline]
    pub(crate) fn is_due(&mut self, bytes: u64) -> bool {
        self.left = self.left.saturating_sub(bytes);
        self.is_timed && self.left == 0
    }

    /// Times a line's way again, in a call that all ranks have come to. Costs two rendezvous, which are
    /// the call's first and second until its own begin.
    ///
    /// # Errors
    ///
    /// As for any step of a call.
    #[cold]
    pub(crate) fn time_again(
        session: &mut HostSession,
        header: &Header,
    ) -> Result<(), EnqueueError> {
        let (segment, rank) = (session.segment.clone(), session.habits.rank);
        // What is left there of the last timing would be taken for an answer, or for the end of this one.
        segment.ball(rank).store(0, Release);
        let (mut exchange, _) = Exchange::new(session, header, None, usize::MAX);
        exchange.meet(|_| ())?;
        let found = Found::of(are_far(&segment, rank, AGAIN));
        // SAFETY: a slot has room for a byte, and its owner alone writes it now.
        let said = exchange.meet(|slot| unsafe { slot.write(found as u8) })?;
        // SAFETY: rank 0 has published it, and writes there again only after this rank's next step.
        let said = unsafe { exchange.slot(said, 0).read() };
        let before = session.distance.far;
        session.distance.found(Found::ALL.get(usize::from(said)).copied().unwrap_or_default());
        if rank == 0 && session.distance.far != before {
            tracing::debug!(target: "crossover::host", far = !before, "ranks have moved");
        }
        Ok(())
    }

    fn found(&mut self, found: Found) {
        let differs = match found {
            Found::Unknown => false,
            Found::Near => self.far,
            Found::Far => !self.far,
        };
        let is_sure = differs && self.is_doubted;
        self.far ^= is_sure;
        self.is_doubted = differs && !is_sure;
        self.left = if self.is_doubted { UNTIL_SURE } else { BETWEEN };
    }
}

/// As rank 0 tells it.
#[derive(Clone, Copy, Debug, Default)]
enum Found {
    #[default]
    Unknown,
    Near,
    Far,
}

impl Found {
    const ALL: [Found; 3] = [Found::Unknown, Found::Near, Found::Far];

    fn of(far: Option<bool>) -> Found {
        match far {
            None => Found::Unknown,
            Some(false) => Found::Near,
            Some(true) => Found::Far,
        }
    }
}

#[cfg(test)]
impl Distance {
    /// Such that it is timed in the next call, and what is found counts.
    pub(crate) fn due(far: bool) -> Distance {
        Distance { far, is_timed: true, is_doubted: true, left: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_not_timed_and_else_so_many_bytes_make_it_due() {
        let mut set = Distance::new(Some(true), false);
        assert!(!set.is_due(u64::MAX) && !set.is_due(u64::MAX) && set.far);
        let mut timed = Distance::new(None, true);
        let is_due: Vec<bool> = (0..5).map(|_| timed.is_due(BETWEEN / 4)).collect();
        assert_eq!(is_due, [false, false, false, true, true]);
        assert!(!timed.far);
    }

    #[test]
    fn a_change_counts_once_it_was_found_twice_in_a_row() {
        use Found::{Far, Near, Unknown};
        let mut distance = Distance::new(Some(false), true);
        let found = [Near, Far, Near, Far, Unknown, Far, Far, Far, Near, Near];
        let seen = found.map(|found| {
            distance.found(found);
            (distance.far, distance.left == UNTIL_SURE)
        });
        let [near, doubted] = [(false, false), (false, true)];
        let [far, far_doubted] = [(true, false), (true, true)];
        let expected = [near, doubted, near, doubted, near, doubted, far, far, far_doubted, near];
        assert_eq!(seen, expected);
    }
}
