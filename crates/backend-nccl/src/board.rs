//! Pages that the ranks of a node share: how far each has come, what it called last, and how the
//! group ended. Between nodes there are none: there each rank's own deadline and the library say
//! what is wrong.

mod record;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::{Duration, Instant};

use crossover_core::agreement::StepError;
use crossover_core::backend::EnqueueError;
use crossover_core::verdict::Verdict;
use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::mm::{MapFlags, ProtFlags};

pub(crate) use record::Record;

/// What comes before the ranks' seats. Zero is the beginning of everything.
#[repr(C)]
struct Head {
    /// 0, 1 while a rank writes the verdict, 2 once it is there.
    ended: AtomicU32,
    verdict: std::cell::UnsafeCell<[u8; Verdict::BYTES]>,
}

/// A rank's own, which it alone writes.
#[repr(C, align(64))]
struct Seat {
    /// The call that it has begun last.
    begun: AtomicU64,
    closed: AtomicU32,
    calls: [Entry; KEPT],
}

/// A call of a rank. `tag` is written last: the call's number, and half of the digest of all calls
/// up to it.
#[repr(C)]
struct Entry {
    tag: AtomicU64,
    kind: AtomicU64,
    count: AtomicU64,
    split: AtomicU64,
}

const WRITING: u32 = 1;
const WRITTEN: u32 = 2;
/// A rank that writes for longer has died meanwhile.
const LONGEST_WRITING: Duration = Duration::from_secs(1);
/// Calls of a rank that are kept. A call of which a rank that is further ahead has lost its own is
/// compared by the next that is kept: tags are of all calls so far.
const KEPT: usize = 64;

/// The pages, mapped; unmapped when the last owner lets go.
pub(crate) struct Board {
    head: *mut Head,
    world: u32,
}

// SAFETY: what is written after the mapping was made is atomic, or guarded by an atomic (the
// verdict).
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

const SEATS_AT: usize = size_of::<Head>().next_multiple_of(align_of::<Seat>());

fn bytes(world: u32) -> usize {
    SEATS_AT + world as usize * size_of::<Seat>()
}

impl Board {
    /// Makes the memory: unnamed, zeroed, every byte there.
    pub(crate) fn create(world: u32) -> Result<OwnedFd, StepError> {
        let bytes = bytes(world);
        let why = |e| StepError(format!("memfd of {bytes} B for the shared board failed: {e}"));
        let file = rustix::fs::memfd_create("crossover-nccl", MemfdFlags::CLOEXEC).map_err(why)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64).map_err(why)?;
        Ok(file)
    }

    /// Maps it.
    pub(crate) fn map(file: impl AsFd, world: u32) -> Result<Arc<Board>, StepError> {
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let pages = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes(world), access, shared, file, 0)
        };
        let pages =
            pages.map_err(|e| StepError(format!("the shared board cannot be mapped: {e}")))?;
        Ok(Arc::new(Board { head: pages.cast(), world }))
    }

    /// Says that a rank has closed.
    pub(crate) fn close(&self, rank: u32) {
        self.seat(rank).closed.store(1, Release);
    }

    /// Has it?
    pub(crate) fn is_closed(&self, rank: u32) -> bool {
        self.seat(rank).closed.load(Acquire) != 0
    }

    /// The ranks that have not closed.
    pub(crate) fn open(&self) -> Vec<u32> {
        (0..self.world).filter(|r| !self.is_closed(*r)).collect()
    }

    /// The last call that this rank has begun.
    fn begun(&self, rank: u32) -> u64 {
        self.seat(rank).begun.load(Acquire)
    }

    /// The ranks that have begun more calls than this one, or fewer.
    pub(crate) fn elsewhere(&self, rank: u32) -> Vec<u32> {
        let mine = self.begun(rank);
        (0..self.world).filter(|r| self.begun(*r) != mine).collect()
    }

    /// The ranks that have not begun this call.
    pub(crate) fn missing(&self, seq: u64) -> Vec<u32> {
        (0..self.world).filter(|r| self.begun(*r) < seq).collect()
    }

    /// Posts this rank's call, and compares it with those of the peers that are there. Whoever comes
    /// last sees all, so that a difference is always seen by somebody. `history` is the digest of
    /// its calls up to this one.
    pub(crate) fn compare(
        &self,
        rank: u32,
        seq: u64,
        mine: &Record,
        history: u64,
    ) -> Result<(), EnqueueError> {
        let tag = seq << 32 | history >> 32;
        let own = self.entry(rank, seq);
        own.kind.store(mine.kind, Relaxed);
        own.count.store(mine.count, Relaxed);
        own.split.store(mine.split, Relaxed);
        own.tag.store(tag, Release);
        self.seat(rank).begun.store(seq, Release);
        // Of two ranks that come at the same time one sees the other's: a store is not overtaken by
        // the loads behind it.
        fence(SeqCst);
        for peer in (0..self.world).filter(|peer| *peer != rank) {
            let theirs = self.entry(peer, seq).tag.load(Acquire);
            if theirs != tag && theirs >> 32 == seq & 0xFFFF_FFFF {
                return Err(self.difference(rank, peer, seq, mine));
            }
        }
        Ok(())
    }

    /// Has the group ended? One look.
    pub(crate) fn is_well(&self) -> bool {
        self.head().ended.load(Relaxed) == 0
    }

    /// The verdict, if there is one, as `rank` reads it. One that is being written is waited for: else
    /// this rank would tell a story of its own.
    pub(crate) fn verdict(&self, rank: u32) -> Option<Verdict> {
        let began = Instant::now();
        while self.head().ended.load(Acquire) == WRITING && began.elapsed() < LONGEST_WRITING {
            std::thread::yield_now();
        }
        if self.head().ended.load(Acquire) != WRITTEN {
            return None;
        }
        // SAFETY: it was written before the word that says so, and never is again.
        let bytes = unsafe { &*self.head().verdict.get() };
        Some(Verdict::decode(bytes, rank))
    }

    /// Ends the group for all. The first verdict stays.
    pub(crate) fn end(&self, verdict: &Verdict) {
        let head = self.head();
        if head.ended.compare_exchange(0, WRITING, AcqRel, Acquire).is_ok() {
            // SAFETY: inside the mapping, and this rank alone was given the right to write here.
            unsafe { head.verdict.get().write(verdict.encode()) };
            head.ended.store(WRITTEN, Release);
        }
    }

    #[cold]
    fn difference(&self, rank: u32, peer: u32, seq: u64, mine: &Record) -> EnqueueError {
        let entry = self.entry(peer, seq);
        let theirs = Record {
            kind: entry.kind.load(Relaxed),
            count: entry.count.load(Relaxed),
            split: entry.split.load(Relaxed),
        };
        let what = if *mine == theirs {
            format!("ranks {peer} and {rank} differ in a call before this one")
        } else if (mine.kind, mine.count) == (theirs.kind, theirs.count) {
            format!("ranks {peer} and {rank} have other counts per rank")
        } else {
            format!("rank {rank} has {mine}, rank {peer} has {theirs}")
        };
        EnqueueError::Mismatch { seq, what }
    }

    fn entry(&self, rank: u32, seq: u64) -> &Entry {
        &self.seat(rank).calls[seq as usize % KEPT]
    }

    fn head(&self) -> &Head {
        // SAFETY: mapped while this lives, aligned to a page; shared writes go through atomics and
        // the cell.
        unsafe { &*self.head }
    }

    fn seat(&self, rank: u32) -> &Seat {
        assert!(rank < self.world, "a rank of the group");
        // SAFETY: within the mapping, which has a seat for each rank, all of atomics.
        unsafe { &*self.head.byte_add(SEATS_AT).cast::<Seat>().add(rank as usize) }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nobody has it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.head.cast(), bytes(self.world)) };
        debug_assert!(unmapped.is_ok());
    }
}
