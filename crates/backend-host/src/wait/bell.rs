//! A bell in the shared segment: two words, a futex, and the barrier that spares publishers one.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, compiler_fence};
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};
use rustix::thread::{MembarrierCommand, membarrier};

use crate::protocol::Bell;

/// The words, as they lie in a rank's status line. All zero is a bell that never rang.
#[repr(C)]
pub(crate) struct SharedBell {
    mark: AtomicU32,
    rings: AtomicU32,
}

/// Puts this process among those that [`fence_all`] fences. The kernel may be too old for it, or a
/// container's filter may refuse it.
pub(crate) fn register() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// A full fence on every running thread of every registered process, this one included; false if
/// it cannot be had.
pub(super) fn fence_all() -> bool {
    membarrier(MembarrierCommand::GlobalExpedited).is_ok()
}

impl Bell for SharedBell {
    #[inline]
    fn is_marked(&self) -> bool {
        self.mark.load(Relaxed) != 0
    }

    fn set_mark(&self, marked: bool) {
        self.mark.store(u32::from(marked), Relaxed);
    }

    fn rings(&self) -> u32 {
        self.rings.load(Acquire)
    }

    fn count_ring(&self) {
        self.rings.fetch_add(1, Release);
    }

    fn wake(&self) {
        // Fails for no address that is mapped. Not `PRIVATE`: the sleepers are other processes.
        let _ = futex::wake(&self.rings, Flags::empty(), i32::MAX as u32);
    }

    fn sleep(&self, rings: u32, longest: Duration) {
        let longest = Timespec::try_from(longest).unwrap_or_default();
        // Woken, interrupted, too late, or not even asleep: whoever waits looks again.
        let _ = futex::wait(&self.rings, Flags::empty(), rings, Some(&longest));
    }

    #[inline]
    fn fence_publisher(&self) {
        compiler_fence(SeqCst);
    }
}
