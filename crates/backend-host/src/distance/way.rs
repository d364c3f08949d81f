//! How long a line takes from rank 0 to another and back.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use crate::segment::Segment;

/// A line that takes longer there and back has left its cache on the way. An AMD EPYC (Zen 4) takes 90 ns
/// within a cache, up to 200 where the machine is busy, and 450 to 700 between two (docs/measurements, "Far
/// from one another").
const FAR: Duration = Duration::from_nanos(300);

/// Trips in one sample: a look at the clock takes as long as half a trip.
const TRIPS: u64 = 8;
/// Of fewer samples all may hold a moment in which one of both had no processor.
const LEAST_SAMPLES: usize = 8;

/// How often a line is sent to each peer, and how long that peer is given to send it back so often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    samples: usize,
    patience: Duration,
}

/// It takes 0.1 ms, if both run at all.
pub(crate) const FORMING: Effort = Effort { samples: 32, patience: Duration::from_millis(10) };
/// It takes 31 us a peer at most, in the middle of an engine's calls; where one does something else
/// meanwhile nothing has changed.
pub(super) const AGAIN: Effort =
    Effort { samples: LEAST_SAMPLES, patience: Duration::from_micros(200) };
/// For how many ranks more than come before it a rank waits: rank 0 may begin late.
const SPARE: u32 = 4;

/// Is a line's way to one of the others longer than inside a cache? Known to rank 0, and not even there
/// where one did not send it back and no other is far.
pub(crate) fn are_far(segment: &Segment, rank: u32, effort: Effort) -> Option<bool> {
    let world = segment.layout().world;
    if rank > 0 {
        send_back(segment, rank, effort.patience);
        return None;
    }
    let fars = (1..world).map(|peer| {
        let way = way(samples(segment, peer, effort.patience).take(effort.samples));
        tracing::trace!(target: "crossover::host", peer, ?way, "a line's way there and back");
        way.map(|way| way > FAR)
    });
    let far = any(fars);
    segment.ball(0).store(ball(world, 0), Release);
    far
}

/// Is one of them? All are asked.
fn any(fars: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let (mut any, mut all) = (false, true);
    for far in fars {
        any |= far == Some(true);
        all &= far.is_some();
    }
    (any || all).then_some(any)
}

/// A line's way, if there are samples enough to tell.
fn way(samples: impl Iterator<Item = Duration>) -> Option<Duration> {
    let least = |(count, least): (usize, Duration), sample| (count + 1, least.min(sample));
    let (count, least) = samples.fold((0, Duration::MAX), least);
    (count >= LEAST_SAMPLES).then_some(least)
}

/// How long a line takes to `peer` and back, sample by sample, until it does not come in time.
// No pause between looks: it can take as long as a trip.
fn samples(
    segment: &Segment,
    peer: u32,
    patience: Duration,
) -> impl Iterator<Item = Duration> + '_ {
    let until = Instant::now() + patience;
    (0..).map_while(move |sample: u64| {
        let start = Instant::now();
        for trip in 1..=TRIPS {
            let sent = ball(peer, sample * TRIPS + trip);
            segment.ball(0).store(sent, Release);
            let mut looks = 0u32;
            while segment.ball(peer).load(Acquire) != sent {
                looks += 1;
                if looks.is_multiple_of(LOOKS) && Instant::now() > until {
                    return None;
                }
            }
        }
        Some(start.elapsed() / TRIPS as u32)
    })
}

/// Sends back what rank 0 sends to this rank, until it sends to the next.
fn send_back(segment: &Segment, rank: u32, patience: Duration) {
    // Rank 0 may need as long for each before; longer only if it is not there any more, which the next
    // vote finds.
    let until = Instant::now() + patience * (rank + SPARE);
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
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::layout::Layout;
    use crate::segment::{Token, create};
    use crate::settings::Place;
    use crate::tests::is_seen;

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
        let is_far = |samples: &[Duration]| way(samples.iter().copied()).map(|way| way > FAR);
        // As an EPYC's: in one cache, in two, and of a peer that soon had no processor.
        assert_eq!(is_far(&times(96, 32)), Some(false));
        assert_eq!(is_far(&times(450, 32)), Some(true));
        assert_eq!(is_far(&[times(785_707, 20), times(101, 1)].concat()), Some(false));
        assert_eq!(is_far(&times(785_707, 1)), None);
        assert_eq!(is_far(&[]), None);
    }

    #[test]
    fn ranks_are_near_if_all_have_answered() {
        let all = [None, Some(false), Some(true)];
        for (a, b) in all.into_iter().flat_map(|a| all.map(|b| (a, b))) {
            let expected = match (a, b) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            assert_eq!(any([a, b].into_iter()), expected, "{a:?} {b:?}");
        }
        assert_eq!(any([Some(false), None, Some(false)].into_iter()), None);
    }

    #[test]
    fn one_rank_that_is_far_makes_all_far() {
        let is_seen = is_seen(|| {
            let [leads, near, far] = &segments();
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(are_far(near, 1, FORMING), None, "only rank 0 knows"));
                scope.spawn(|| dawdle(far, 2));
                are_far(leads, 0, FORMING) == Some(true)
            })
        });
        assert!(is_seen);
    }

    #[test]
    fn who_is_not_there_is_not_awaited_for_long() {
        let [alone, other] = &segments();
        let since = Instant::now();
        assert_eq!(are_far(alone, 0, FORMING), None, "nobody came");
        alone.ball(0).store(0, Release);
        assert_eq!(are_far(other, 1, FORMING), None);
        assert!(since.elapsed() < Duration::from_secs(2));
    }
}
