//! Where things are in a rank's share of the page.

use std::ptr::copy_nonoverlapping as copy;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::page::{Line, Page};
use crate::wait::Wait;

/// Epochs whose slots are apart.
pub(super) const RING: u64 = 4;
/// Bytes of a slot.
pub(super) const CHUNK: usize = 64 << 10;
/// Bytes beside a line's flag.
pub(super) const LINE_DATA: usize = 56;
pub(super) const TINY_LINES: usize = 5;
/// Bytes that lines with flags carry.
pub(super) const TINY: usize = LINE_DATA * TINY_LINES;

const LINES: usize = 4096;
const SLOTS: usize = 64 << 10;
const RESULTS: usize = SLOTS + RING as usize * CHUNK;

#[repr(C, align(64))]
struct Flagged {
    data: [AtomicU64; 7],
    /// The epoch whose data it is.
    flag: AtomicU64,
}

#[derive(Clone, Copy)]
pub(super) struct Memory<'p> {
    page: &'p Page,
}

impl<'p> Memory<'p> {
    pub(super) fn new(page: &'p Page) -> Memory<'p> {
        Memory { page }
    }

    /// The last epoch whose slot the rank has filled.
    pub(super) fn posted(&self, rank: usize) -> &'p AtomicU64 {
        self.word(rank, 0)
    }

    /// The last epoch whose result the rank has written.
    pub(super) fn summed(&self, rank: usize) -> &'p AtomicU64 {
        self.word(rank, 1)
    }

    /// The last epoch that the rank is through with.
    pub(super) fn done(&self, rank: usize) -> &'p AtomicU64 {
        self.word(rank, 2)
    }

    pub(super) fn slot(&self, rank: usize, epoch: u64) -> *mut u8 {
        // SAFETY: within the share.
        unsafe { self.page.share(rank).add(SLOTS + (epoch % RING) as usize * CHUNK) }
    }

    pub(super) fn result(&self, rank: usize, epoch: u64) -> *mut u8 {
        // SAFETY: within the share.
        unsafe { self.page.share(rank).add(RESULTS + (epoch % RING) as usize * CHUNK) }
    }

    /// # Safety
    ///
    /// At most [`TINY`] bytes at `input`.
    #[inline]
    pub(super) unsafe fn write_lines(
        &self,
        rank: usize,
        epoch: u64,
        input: *const u8,
        bytes: usize,
    ) {
        let mut offset = 0;
        for line in self.lines(rank, epoch) {
            if offset >= bytes {
                break;
            }
            let here = (bytes - offset).min(LINE_DATA);
            // SAFETY: within input and line; only the line's owner writes it.
            unsafe { copy(input.add(offset), line.data.as_ptr().cast_mut().cast(), here) };
            line.flag.store(epoch, Release);
            offset += here;
        }
    }

    /// A line's data, once it is there.
    #[inline]
    pub(super) fn line(
        &self,
        wait: Wait,
        rank: usize,
        epoch: u64,
        line: usize,
    ) -> &'p [AtomicU64; 7] {
        let line = &self.lines(rank, epoch)[line];
        wait.until(|| line.flag.load(Acquire) == epoch);
        &line.data
    }

    fn lines(&self, rank: usize, epoch: u64) -> &'p [Flagged; TINY_LINES] {
        let at = LINES + (epoch % RING) as usize * size_of::<[Flagged; TINY_LINES]>();
        // SAFETY: within the share, aligned; zero is valid, and all of it is atomics.
        unsafe { &*self.page.share(rank).add(at).cast() }
    }

    fn word(&self, rank: usize, number: usize) -> &'p AtomicU64 {
        // SAFETY: within the share, aligned; zero is valid.
        let line = unsafe { &*self.page.share(rank).cast::<Line>().add(number) };
        &line.0
    }
}
