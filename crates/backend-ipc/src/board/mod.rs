//! Pages of the host that every rank maps and every kernel can reach: the word that ends all waits,
//! what kernels that gave up have to say, the calls of the ranks, and how the group ended.

mod calls;
mod end;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crossover_core::agreement::StepError;
use crossover_core::verdict::Verdict;
use crossover_kernel_abi::{Failure, MAX_WORLD};
use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::mm::{MapFlags, ProtFlags};

pub(crate) use calls::Fingerprint;

/// What lies where. Zero is the beginning of everything.
#[repr(C)]
struct Pages {
    /// Read by spinning kernels: not 0 ends their waits.
    abort: AtomicU32,
    /// 0, 1 while a rank writes the verdict, 2 once it is there.
    ended: AtomicU32,
    nonce: AtomicU64,
    padding: [u64; 6],
    failures: [Failure; MAX_WORLD],
    /// Of each rank: has it left its mark, has it closed?
    marks: [AtomicU64; MAX_WORLD],
    closed: [AtomicU32; MAX_WORLD],
    calls: [calls::Ring; MAX_WORLD],
    verdict: std::cell::UnsafeCell<[u8; Verdict::BYTES]>,
}

/// The pages, mapped; unmapped when the last owner lets go.
pub(crate) struct Board {
    pages: *mut Pages,
}

// SAFETY: what is written after the mapping was made is atomic, or guarded by an atomic (the
// verdict), or written by a device and read volatile after an atomic says so (failures), but for the word
// that tells of a wait, which is one atomic.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

/// Bytes of the mapping.
pub(crate) const BYTES: usize = size_of::<Pages>().next_multiple_of(4096); // size: a page

impl Board {
    /// Makes the memory: unnamed, zeroed, every byte there.
    pub(crate) fn create() -> Result<OwnedFd, StepError> {
        let why = |e| StepError(format!("memfd of {BYTES} B for the shared board failed: {e}"));
        let file = rustix::fs::memfd_create("crossover-ipc", MemfdFlags::CLOEXEC).map_err(why)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, BYTES as u64).map_err(why)?;
        Ok(file)
    }

    /// Maps it.
    pub(crate) fn map(file: impl AsFd) -> Result<Arc<Board>, StepError> {
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let pages =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), BYTES, access, shared, file, 0) };
        let pages =
            pages.map_err(|e| StepError(format!("the shared board cannot be mapped: {e}")))?;
        Ok(Arc::new(Board { pages: pages.cast() }))
    }

    /// Where it is, for the device to be told.
    pub(crate) fn address(&self) -> *mut u8 {
        self.pages.cast()
    }

    /// Bytes from its start to the word that ends all waits.
    pub(crate) const fn abort_at() -> u64 {
        std::mem::offset_of!(Pages, abort) as u64
    }

    /// Bytes from its start to a rank's failure.
    pub(crate) const fn failure_at(rank: u32) -> u64 {
        (std::mem::offset_of!(Pages, failures) + rank as usize * size_of::<Failure>()) as u64
    }

    /// Leaves a mark for all to see.
    pub(crate) fn mark(&self, rank: u32, mark: u64) {
        self.pages().marks[rank as usize].store(mark, Release);
    }

    /// The mark that a rank left.
    pub(crate) fn mark_of(&self, rank: u32) -> u64 {
        self.pages().marks[rank as usize].load(Acquire)
    }

    /// Says that a rank has closed.
    pub(crate) fn close(&self, rank: u32) {
        self.pages().closed[rank as usize].store(1, Release);
    }

    /// Has it?
    pub(crate) fn is_closed(&self, rank: u32) -> bool {
        self.pages().closed[rank as usize].load(Acquire) != 0
    }

    fn pages(&self) -> &Pages {
        // SAFETY: mapped while this lives, aligned to a page; shared writes go through atomics and
        // the cell.
        unsafe { &*self.pages }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nobody has it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.pages.cast(), BYTES) };
        debug_assert!(unmapped.is_ok());
    }
}
