//! The shared memory of a group, mapped on this rank.

mod create;

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crossover_core::agreement::StepError;
use rustix::mm::{MapFlags, ProtFlags};

use crate::layout::{self, ARRIVAL, Layout, MAX_WORLD, REST, SEQ};
use crate::protocol::{Board, Once, ring_if_marked};
use crate::wait::SharedBell;

pub(crate) use self::create::{Token, create};

/// A mapping of the segment. It stays valid for as long as this lives, whatever becomes of peers:
/// the file has its full size allocated before anyone maps it, and no name to be removed by.
pub(crate) struct Segment {
    base: NonNull<u8>,
    layout: Layout,
    /// Where each rank's two slots have their data: looked up several times a call.
    data: [[NonNull<u8>; 2]; MAX_WORLD as usize],
    /// Where each rank's ring begins, if there are any.
    rings: [NonNull<u8>; MAX_WORLD as usize],
}

// SAFETY: the mapping belongs to the value and may be used from any thread; who may touch which
// bytes when is decided by the protocol alone.
unsafe impl Send for Segment {}
// SAFETY: as above; all that `&Segment` offers is atomics, and raw pointers whose use is unsafe.
unsafe impl Sync for Segment {}

impl Segment {
    /// Maps the file that rank 0 made, if this is it.
    pub(crate) fn map(
        file: BorrowedFd<'_>,
        layout: Layout,
        token: Token,
    ) -> Result<Self, StepError> {
        let bytes = layout.bytes();
        let failed = |call: &str, e: rustix::io::Errno| StepError(format!("{call} failed: {e}"));
        let size = rustix::fs::fstat(file).map_err(|e| failed("fstat", e))?.st_size;
        if size != bytes as i64 {
            return Err(StepError(format!(
                "rank 0's segment has {size} B where {bytes} B are expected"
            )));
        }
        // SAFETY: a fresh mapping at an address that the kernel chooses; the file has its size.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                // Page faults belong here and not into the first calls.
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )
        }
        .map_err(|e| failed(&format!("mmap of {bytes} B"), e))?;
        let base = NonNull::new(base.cast()).expect("the kernel maps nothing at 0 unasked");
        // Places of ranks that do not exist are never looked up, nor are rings where there are none.
        let near = |rank: usize| (rank as u32).min(layout.world - 1);
        let data = std::array::from_fn(|rank| {
            // SAFETY: every offset of the layout is inside the mapping.
            [0, 1].map(|parity| unsafe { base.add(layout.data(near(rank), parity)) })
        });
        let rings = std::array::from_fn(|rank| match layout.ring {
            0 => base,
            // SAFETY: as above.
            _ => unsafe { base.add(layout.ring(near(rank))) },
        });
        let segment = Segment { base, layout, data, rings };
        let at = segment.at(layout::TOKEN).cast::<[u8; Token::BYTES]>();
        // SAFETY: inside the mapping; rank 0 wrote it before it passed the file on, nobody after.
        if unsafe { at.read() } != token.encode() {
            return Err(StepError::new(
                "the segment is not the one that rank 0 made: do all ranks run on one node?",
            ));
        }
        Ok(segment)
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The words of rank `rank`'s call header for steps of this parity.
    #[inline]
    pub(crate) fn record(&self, rank: u32, parity: usize) -> [&AtomicU64; 4] {
        std::array::from_fn(|i| {
            self.beside(rank, parity, self.layout.chunk as isize + 8 * i as isize)
        })
    }

    /// The number of the call in whose step rank `rank` is, beside its arrival word.
    #[inline]
    pub(crate) fn seq(&self, rank: u32, parity: usize) -> &AtomicU64 {
        self.beside(rank, parity, SEQ)
    }

    /// What follows in the same cache line: [`layout::INLINE`] bytes of data, or one word.
    #[inline]
    pub(crate) fn inline(&self, rank: u32, parity: usize) -> *mut u8 {
        // SAFETY: inside the slot.
        unsafe { self.data(rank, parity).offset(REST) }
    }

    /// The first of those bytes, as a word.
    #[inline]
    pub(crate) fn rest(&self, rank: u32, parity: usize) -> &AtomicU64 {
        self.beside(rank, parity, REST)
    }

    /// The data of a slot: [`Layout::chunk`] bytes, aligned to 64.
    #[inline]
    pub(crate) fn data(&self, rank: u32, parity: usize) -> *mut u8 {
        debug_assert!(rank < self.layout.world);
        self.data[rank as usize][parity].as_ptr()
    }

    /// A rank's ring: [`Layout::ring`] bytes, aligned to 64.
    #[inline]
    pub(crate) fn ring(&self, rank: u32) -> *mut u8 {
        debug_assert!(rank < self.layout.world && self.layout.ring > 0);
        self.rings[rank as usize].as_ptr()
    }

    /// Nonzero once this rank has closed the group.
    pub(crate) fn closed(&self, rank: u32) -> &AtomicU64 {
        self.word(self.layout.closed(rank))
    }

    /// Where a rank shows at set-up that its writes are seen.
    pub(crate) fn mark(&self, rank: u32) -> &AtomicU64 {
        self.word(self.layout.mark(rank))
    }

    /// What a rank throws so that a line's way is timed.
    pub(crate) fn ball(&self, rank: u32) -> &AtomicU64 {
        self.word(self.layout.ball(rank))
    }

    /// What the peers of this rank sleep over.
    #[inline]
    pub(crate) fn bell(&self, rank: u32) -> &SharedBell {
        let bell = self.at(self.layout.bell(rank)).cast::<SharedBell>();
        // SAFETY: inside the mapping, aligned by the layout, and accessed as atomics only.
        unsafe { &*bell }
    }

    /// Who may write the verdict.
    pub(crate) fn verdict_word(&self) -> Once<'_, AtomicU64> {
        Once(self.word(layout::VERDICT_WORD))
    }

    /// Room for the encoded verdict: `Verdict::BYTES`.
    pub(crate) fn verdict(&self) -> *mut u8 {
        self.at(layout::VERDICT)
    }

    /// The word so many bytes from the beginning of a slot's data.
    #[inline]
    fn beside(&self, rank: u32, parity: usize, bytes: isize) -> &AtomicU64 {
        // SAFETY: inside the slot, aligned by the layout; where data may lie too, a call's steps
        // use the place for one of both, alike on all ranks.
        unsafe { &*self.data(rank, parity).offset(bytes).cast::<AtomicU64>() }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        let word = self.at(offset).cast::<AtomicU64>();
        debug_assert!(word.is_aligned());
        // SAFETY: inside the mapping, aligned by the layout, and every process accesses this
        // place as an atomic only.
        unsafe { &*word }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < self.layout.bytes());
        // SAFETY: every offset comes from the layout, which checks ranks and parities.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl Board for Segment {
    type Word = AtomicU64;

    #[inline]
    fn arrival(&self, rank: u32, parity: usize) -> &AtomicU64 {
        self.beside(rank, parity, ARRIVAL)
    }

    #[inline]
    fn after_publish(&self, rank: u32) {
        ring_if_marked(self.bell(rank));
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made; nothing borrows from it any more. It cannot fail
        // for a mapping that exists, and nothing could be done if it did.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.layout.bytes()) };
    }
}
