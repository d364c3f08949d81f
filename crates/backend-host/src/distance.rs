//! Whether ranks are far from one another.
//!
//! Processors that share a last-level cache pass a line on inside of it; others have to fetch it over
//! what connects their caches, and take it back the same way. Which it is decides how a rank best gives
//! many bytes (see [`crate::mover::PARAMS`]), and what a system tells of its caches does not: a virtual
//! machine's processors lie where its host lets them, and threads that are bound to none where the kernel
//! does, for a while. So a line's way is timed when the group forms and now and then afterwards: from rank
//! 0 to every other one, since ranks that share a cache with one share it with all.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use crossover_core::backend::EnqueueError;

use crate::exchange::Exchange;
use crate::header::Header;
use crate::segment::Segment;
use crate::session::HostSession;

/// A line that takes longer there and back has left its cache on the way. An AMD EPYC (Zen 4) takes 90 ns
/// within a cache and 450 to 490 between two (docs/measurements, "Far from one another").
const FAR: Duration = Duration::from_nanos(200);

/// Trips in one sample: a look at the clock takes as long as half a trip.
const TRIPS: u64 = 8;
/// Samples when the group forms.
pub(crate) const SAMPLES: usize = 32;
/// Of fewer samples all may hold a moment in which one of both had no processor.
const LEAST_SAMPLES: usize = 8;
/// How long a peer is given to send a line back so often. It takes 0.1 ms, if both run at all.
const PATIENCE: Duration = Duration::from_millis(10);
/// For how many ranks more than come before it a rank waits: rank 0 may begin late.
const SPARE: u32 = 4;

/// How many bytes ranks give between two timings: at the least 4 ms, of which a timing takes 4 us where
/// ranks are near and 31 where they are far.
const BETWEEN: u64 = 128 << 20; // size: of the inputs of calls, together

/// What a group knows of its ranks' distance. All of it is the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distance {
    /// Ranks are far from one another.
    pub(crate) far: bool,
    /// Nobody has set it, and each rank has a processor: it was timed, and will be.
    is_timed: bool,
    /// Bytes given since.
    given: u64,
}

impl Distance {
    /// As the settings have it or rank 0 has found it; `None` where neither knows.
    pub(crate) fn new(far: Option<bool>, is_timed: bool) -> Distance {
        Distance { far: far.unwrap_or(false), is_timed, given: 0 }
    }

    /// A call gives so many bytes: is it to be timed again before?
    #[inline]
    pub(crate) fn is_due(&mut self, bytes: u64) -> bool {
        self.given = self.given.saturating_add(bytes);
        self.is_timed && self.given >= BETWEEN
    }

    /// Times a line's way again, in a call that all ranks have come to. Costs two rendezvous.
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
        let (mut exchange, _) = Exchange::new(session, header, None);
        exchange.meet(|_| ())?;
        let found = Found::of(are_far(&segment, rank, LEAST_SAMPLES));
        // SAFETY: a slot has room for a byte, and its owner alone writes it now.
        let said = exchange.meet(|slot| unsafe { slot.write(found as u8) })?;
        // SAFETY: rank 0 has published it, and publishes nothing before this rank's next step.
        let found = unsafe { exchange.slot(said, 0).read() };
        let distance = &mut session.distance;
        let far =
            if found == Found::Unknown as u8 { distance.far } else { found == Found::Far as u8 };
        if rank == 0 && far != distance.far {
            tracing::debug!(target: "crossover::host", far, "ranks have moved");
        }
        (distance.far, distance.given) = (far, 0);
        Ok(())
    }
}

/// As rank 0 tells it.
enum Found {
    Unknown,
    Near,
    Far,
}

impl Found {
    fn of(far: Option<bool>) -> Found {
        match far {
            None => Found::Unknown,
            Some(false) => Found::Near,
            Some(true) => Found::Far,
        }
    }
}

/// Is a line's way to one of the others longer than inside a cache, by the least of so many samples? Known
/// to rank 0, and not even there where nobody sent it back.
pub(crate) fn are_far(segment: &Segment, rank: u32, count: usize) -> Option<bool> {
    let world = segment.layout().world;
    if rank > 0 {
        send_back(segment, rank);
        return None;
    }
    let ways: Vec<Option<Duration>> =
        (1..world).map(|peer| way(&samples(segment, peer, count))).collect();
    segment.ball(0).store(ball(world, 0), Release);
    tracing::debug!(target: "crossover::host", ?ways, "a line's way to each rank and back");
    ways.into_iter().flatten().max().map(|longest| longest > FAR)
}

/// A line's way, if there are samples enough to tell.
fn way(samples: &[Duration]) -> Option<Duration> {
    samples.iter().min().copied().filter(|_| samples.len() >= LEAST_SAMPLES)
}

/// How long a line takes to `peer` and back, sample by sample.
// No pause between looks: it can take as long as a trip.
fn samples(segment: &Segment, peer: u32, count: usize) -> Vec<Duration> {
    let until = Instant::now() + PATIENCE;
    let mut samples = Vec::with_capacity(count);
    for sample in 0..count as u64 {
        let start = Instant::now();
        for trip in 1..=TRIPS {
            let sent = ball(peer, sample * TRIPS + trip);
            segment.ball(0).store(sent, Release);
            let mut looks = 0u32;
            while segment.ball(peer).load(Acquire) != sent {
                looks += 1;
                if looks.is_multiple_of(LOOKS) && Instant::now() > until {
                    return samples;
                }
            }
        }
        samples.push(start.elapsed() / TRIPS as u32);
    }
    samples
}

/// Sends back what rank 0 sends to this rank, until it sends to the next.
fn send_back(segment: &Segment, rank: u32) {
    // Rank 0 may need as long for each before; longer only if it is not there any more, which the next
    // vote finds.
    let until = Instant::now() + PATIENCE * (rank + SPARE);
    let mut looks = 0u32;
    let mut last = 0;
    loop {
        let sent = segment.ball(0).load(Acquire);
        if whose(sent) > rank {
            return;
        }
        if whose(sent) == rank && sent != last {
            segment.ball(rank).store(sent, Release);
            last = sent;
            continue;
        }
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS) {
            if Instant::now() > until {
                return;
            }
            // Perhaps rank 0 waits for this processor.
            std::thread::yield_now();
        }
    }
}

/// Looks between two at the clock.
const LOOKS: u32 = 512;

/// What rank 0 sends to a rank.
fn ball(peer: u32, trip: u64) -> u64 {
    u64::from(peer) << 32 | trip
}

fn whose(ball: u64) -> u32 {
    (ball >> 32) as u32
}

#[cfg(test)]
impl Distance {
    /// Such that it is timed in the next call.
    pub(crate) fn due(far: bool) -> Distance {
        Distance { far, is_timed: true, given: BETWEEN }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::layout::Layout;
    use crate::segment::{Token, create};
    use crate::settings::Place;

    /// As each rank maps it.
    fn segments<const N: usize>() -> [Segment; N] {
        let layout = Layout { world: N as u32, chunk: 1024, ring: 0 };
        let token = Token { nonce: 7, layout };
        let file = create(&Place::Memfd, token).unwrap();
        [(); N].map(|()| Segment::map(file.as_fd(), layout, token).unwrap())
    }

    /// Answers as `send_back` does, a while later.
    fn dawdle(segment: &Segment, rank: u32) {
        let mut last = 0;
        while whose(last) <= rank {
            let sent = segment.ball(0).load(Acquire);
            if sent != last && whose(sent) == rank {
                let since = Instant::now();
                while since.elapsed() < 4 * FAR {
                    std::hint::spin_loop();
                }
                segment.ball(rank).store(sent, Release);
            }
            last = sent;
        }
    }

    #[test]
    fn a_way_is_the_least_of_enough_samples() {
        let times = |nanos: u64, count: usize| vec![Duration::from_nanos(nanos); count];
        let is_far = |samples: &[Duration]| way(samples).map(|way| way > FAR);
        // As an EPYC's: in one cache, in two, and of a peer that soon had no processor.
        assert_eq!(is_far(&times(96, 32)), Some(false));
        assert_eq!(is_far(&times(450, 32)), Some(true));
        assert_eq!(is_far(&[times(785_707, 20), times(101, 1)].concat()), Some(false));
        assert_eq!(is_far(&times(785_707, 1)), None);
        assert_eq!(is_far(&[]), None);
    }

    #[test]
    fn one_rank_that_is_far_makes_all_far() {
        // On a machine that does something else a rank may not be there in time.
        let is_seen = (0..50).any(|_| {
            let [leads, near, far] = &segments();
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(are_far(near, 1, SAMPLES), None, "only rank 0 knows"));
                scope.spawn(|| dawdle(far, 2));
                are_far(leads, 0, SAMPLES) == Some(true)
            })
        });
        assert!(is_seen);
    }

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
    fn who_is_not_there_is_not_awaited_for_long() {
        let [alone, other] = &segments();
        let since = Instant::now();
        assert_eq!(are_far(alone, 0, SAMPLES), None, "nobody came");
        alone.ball(0).store(0, Release);
        assert_eq!(are_far(other, 1, SAMPLES), None);
        assert!(since.elapsed() < Duration::from_secs(2));
    }
}
