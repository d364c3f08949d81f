//! Where things lie in a group's segment.
//!
//! ```text
//! 0      token            nonce, world, layout version, chunk, ring: written by rank 0 before anyone maps
//! 128    verdict word     0 none, 1 being written, 2 written
//! 256    verdict          the encoded verdict
//! 2048   status lines     per rank 128 B: closed word, mark of set-up, bell; in a line of its own the ball
//! 4096   slots            per rank two, by step parity: head (64 B), the chunk, record (64 B)
//! then   rings            per rank one: data of middling calls, at a new place each time
//! ```
//!
//! Every line and slot has one writer, the verdict its first; but for the bells, which whoever waits
//! may mark. A slot's head is what peers wait for:
//! the arrival word, the call's number, and up to [`INLINE`] bytes of data, so that a tiny message
//! is one cache line. Longer data follows in the next line, which processors fetch in pairs. The
//! record is the call's whole header, which peers read only where they have to explain a mismatch.
//!
//! Data lies a little before a page's end, for rank r 64 + 128 r bytes: engines' buffers often begin
//! with a page, and a processor that reads one page and writes another takes a load for dependent on
//! an earlier store whose address has the same low 12 bits. So the one must not be just ahead of the
//! other, and the ranks' slots must not crowd into one set of a cache.

use crossover_core::verdict::Verdict;

use crate::wait::SharedBell;

/// Most ranks of a group.
pub(crate) const MAX_WORLD: u32 = 16;

/// Changes whenever anything on this page does.
pub(crate) const VERSION: u64 = 7;

/// The words of a slot's head, in bytes from the slot's data: the arrival word, the call's number,
/// and the first of [`INLINE`] bytes.
pub(crate) const ARRIVAL: isize = -(HEAD as isize);
pub(crate) const SEQ: isize = ARRIVAL + 8;
pub(crate) const REST: isize = SEQ + 8;

/// Bytes of data that fit into a slot's head.
pub(crate) const INLINE: usize = HEAD - 2 * size_of::<u64>();

pub(crate) const TOKEN: usize = 0;
pub(crate) const VERDICT_WORD: usize = 128;
pub(crate) const VERDICT: usize = 256;
const STATUS: usize = 2048;
const SLOTS: usize = PAGE;
const STATUS_LINE: usize = 128;
const HEAD: usize = LINE;
const RECORD: usize = LINE;
/// Room for a head, and for ranks' slots to lie apart.
const SPREAD: usize = MAX_WORLD as usize * 2 * LINE;
const LINE: usize = 64;
const PAGE: usize = 4096;

const _: () = assert!(VERDICT + Verdict::BYTES <= STATUS);
const _: () = assert!(16 + size_of::<SharedBell>() <= LINE && 2 * LINE <= STATUS_LINE);
const _: () = assert!(STATUS + MAX_WORLD as usize * STATUS_LINE <= SLOTS);

/// The number of ranks, the bytes of a chunk and of a ring: all that the layout depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) world: u32,
    /// Bytes of one slot's data; a multiple of 64.
    pub(crate) chunk: usize,
    /// Bytes of one rank's ring; a multiple of 64, and 0 where there is none.
    pub(crate) ring: usize,
}

impl Layout {
    /// Bytes of the whole segment.
    pub(crate) fn bytes(self) -> usize {
        self.rings() + self.world as usize * self.ring_stride() + SPREAD.next_multiple_of(PAGE)
    }

    /// Rank `rank`'s closed word.
    pub(crate) fn closed(self, rank: u32) -> usize {
        self.checked(rank);
        STATUS + rank as usize * STATUS_LINE
    }

    /// What rank `rank`'s peers sleep over. While the group runs this line is written only so as to
    /// sleep and to wake: the rank itself, which looks after each step, has it at hand.
    pub(crate) fn bell(self, rank: u32) -> usize {
        self.mark(rank) + 8
    }

    /// Where rank `rank` proves, at set-up, that its writes are seen.
    pub(crate) fn mark(self, rank: u32) -> usize {
        self.closed(rank) + 8
    }

    /// What rank `rank` throws so that a line's way is timed, at set-up and between calls.
    pub(crate) fn ball(self, rank: u32) -> usize {
        self.closed(rank) + LINE
    }

    /// The data of rank `rank`'s slot for steps of this parity: `chunk` bytes. In front of it is the
    /// head, behind it the record.
    pub(crate) fn data(self, rank: u32, parity: usize) -> usize {
        self.checked(rank);
        assert!(parity < 2, "a parity is 0 or 1");
        let rank = rank as usize;
        SLOTS + SPREAD.next_multiple_of(PAGE) + (2 * rank + parity) * self.stride()
            - (LINE + 2 * LINE * rank)
    }

    /// Rank `rank`'s ring: `ring` bytes.
    pub(crate) fn ring(self, rank: u32) -> usize {
        self.checked(rank);
        let rank = rank as usize;
        self.rings() + SPREAD.next_multiple_of(PAGE) + rank * self.ring_stride()
            - (LINE + 2 * LINE * rank)
    }

    fn rings(self) -> usize {
        SLOTS + SPREAD.next_multiple_of(PAGE) + 2 * self.world as usize * self.stride()
    }

    fn stride(self) -> usize {
        (HEAD + self.chunk + RECORD + SPREAD).next_multiple_of(PAGE)
    }

    fn ring_stride(self) -> usize {
        match self.ring {
            0 => 0,
            ring => (ring + SPREAD).next_multiple_of(PAGE),
        }
    }

    fn checked(self, rank: u32) {
        assert!(rank < self.world, "rank {rank} of a group of {}", self.world);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_everything_is_inside() {
        for world in 1..=MAX_WORLD {
            for (chunk, ring) in [(1024, 0), (4096, 3072), (4160, 1 << 20), (262_144, 2 << 20)] {
                let layout = Layout { world, chunk, ring };
                let mut next = layout.closed(world - 1) + STATUS_LINE;
                for (rank, parity) in (0..world).flat_map(|rank| [(rank, 0), (rank, 1)]) {
                    let head = layout.data(rank, parity) - HEAD;
                    assert!(head >= next, "{world} {chunk} {rank} {parity}");
                    assert!(head.is_multiple_of(2 * LINE));
                    next = head + HEAD + chunk + RECORD;
                }
                for rank in (0..world).filter(|_| ring > 0) {
                    assert!(layout.ring(rank) >= next, "{world} {chunk} {ring} {rank}");
                    assert!(layout.ring(rank).is_multiple_of(64));
                    next = layout.ring(rank) + ring;
                }
                assert!(next <= layout.bytes());
            }
        }
    }
}
