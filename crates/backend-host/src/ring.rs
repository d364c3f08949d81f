//! Where a rank's next data go: round and round a ring, so that they are written to lines that no peer
//! has had in its caches lately.
//!
//! A line that a peer has just read is in that peer's cache, and writing it again has to take it away
//! first, line by line. Writing 64 KiB to a slot that a peer read two steps ago takes an AMD EPYC (Zen 4)
//! 7.2 us, to lines that have left the caches since 1.7 us (docs/measurements, "Shared memory: which way
//! when"). With a ring as long as a processor's second-level cache, or twice that, this comes true.
//!
//! Every rank takes the same places, since they follow from the sizes of the calls alone. Why nobody
//! overwrites what a peer still reads: [`crate::protocol`]; the models there use a place again after two
//! steps, which is the soonest that a ring does.

/// One rank's way round its ring.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: usize,
    next: usize,
}

impl Ring {
    /// A ring of so many bytes, or none at all.
    pub(crate) fn new(bytes: usize) -> Self {
        Ring { bytes, next: 0 }
    }

    /// Can a step have so many bytes? With three times as many in the ring, two steps that follow one
    /// another never share a byte, wherever the ring ends. (So the usual rings of more than ten ranks
    /// take no whole chunk of 256 KiB, and calls that need one go through the slots.)
    #[inline]
    pub(crate) fn takes(&self, room: usize) -> bool {
        0 < room && room <= self.bytes / 3
    }

    /// The place of the next step's `room` bytes, which [the ring takes](Ring::takes). It is not
    /// the place of any of the step before, whose data peers may still read.
    #[inline]
    pub(crate) fn next(&mut self, room: usize) -> usize {
        debug_assert!(self.takes(room) && room.is_multiple_of(64));
        let at = if self.next + room <= self.bytes { self.next } else { 0 };
        self.next = at + room;
        at
    }
}

#[cfg(test)]
impl Ring {
    /// How far round it is.
    pub(crate) fn at(&self) -> usize {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn steps_that_follow_one_another_share_nothing(
            ring in 3..200usize,
            rooms in prop::collection::vec(any::<prop::sample::Index>(), 1..300),
        ) {
            let mut way = Ring::new(ring * 64);
            let mut before = 0..0;
            let rooms = rooms.into_iter().map(|room| (1 + room.index(ring)) * 64);
            for room in rooms.filter(|room| Ring::new(ring * 64).takes(*room)) {
                let at = way.next(room);
                prop_assert!(at + room <= ring * 64);
                prop_assert!(at >= before.end || at + room <= before.start, "{at} {room} {before:?}");
                before = at..at + room;
            }
        }
    }

    #[test]
    fn what_no_ring_takes() {
        assert!(!Ring::new(0).takes(64) && !Ring::new(3 * 64 - 1).takes(64));
        assert!(Ring::new(3 * 64).takes(64) && !Ring::new(1 << 20).takes(0));
    }
}
