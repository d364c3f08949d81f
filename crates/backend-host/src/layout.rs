//! Where things lie in a group's segment.
//!
//! ```text
//! 0      token            nonce, world, layout version, chunk: written by rank 0 before anyone maps
//! 128    verdict word     0 none, 1 being written, 2 written
//! 256    verdict          the encoded verdict
//! 2048   status lines     per rank 128 B: closed word, mark of set-up
//! 4096   slots            per rank two, by step parity: head (64 B), then the chunk
//! ```
//!
//! Every line and slot has one writer, the verdict its first. A slot's head holds the arrival word
//! and the call's header, and its data follows in the next cache line, which processors fetch in
//! pairs: a small message costs its reader little more than the flag.

/// Most ranks of a group.
pub(crate) const MAX_WORLD: u32 = 16;

/// Changes whenever anything on this page does.
pub(crate) const VERSION: u64 = 1;

/// Room of an encoded verdict in bytes.
pub(crate) const VERDICT_BYTES: usize = STATUS - VERDICT;

pub(crate) const TOKEN: usize = 0;
pub(crate) const VERDICT_WORD: usize = 128;
pub(crate) const VERDICT: usize = 256;
const STATUS: usize = 2048;
const SLOTS: usize = PAGE;
const STATUS_LINE: usize = 128;
const HEAD: usize = 64;
const PAGE: usize = 4096;

const _: () = assert!(STATUS + MAX_WORLD as usize * STATUS_LINE <= SLOTS);

/// The number of ranks and the bytes of a chunk: all that the layout depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) world: u32,
    /// Bytes of one slot's data; a multiple of 64.
    pub(crate) chunk: usize,
}

impl Layout {
    /// Bytes of the whole segment.
    pub(crate) fn bytes(self) -> usize {
        SLOTS + 2 * self.world as usize * self.stride()
    }

    /// Rank `rank`'s closed word.
    pub(crate) fn closed(self, rank: u32) -> usize {
        self.checked(rank);
        STATUS + rank as usize * STATUS_LINE
    }

    /// Where rank `rank` proves, at set-up, that its writes are seen.
    pub(crate) fn mark(self, rank: u32) -> usize {
        self.closed(rank) + 8
    }

    /// Rank `rank`'s arrival word for steps of this parity; the header's words follow it.
    pub(crate) fn head(self, rank: u32, parity: usize) -> usize {
        self.checked(rank);
        assert!(parity < 2, "a parity is 0 or 1");
        SLOTS + (2 * rank as usize + parity) * self.stride()
    }

    /// The data of rank `rank`'s slot for steps of this parity: `chunk` bytes.
    pub(crate) fn data(self, rank: u32, parity: usize) -> usize {
        self.head(rank, parity) + HEAD
    }

    /// Bytes of each of `world` equal regions of a slot, a multiple of 64.
    pub(crate) fn region(self) -> usize {
        self.chunk / self.world as usize / 64 * 64
    }

    fn stride(self) -> usize {
        (HEAD + self.chunk).next_multiple_of(PAGE)
    }

    fn checked(self, rank: u32) {
        assert!(rank < self.world, "rank {rank} of a group of {}", self.world);
    }
}
