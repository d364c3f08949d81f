//! What the rank's device waits for: kernels tell it in memory, and it is kept in the ring, where peers and
//! whoever reads later find it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossover_core::backend::{DeviceWait, Watch};

use crate::clock;
use crate::ring::Ring;

/// A wait that has not moved for so many looks has come to its end. Threads that wait tell so each time they look
/// at the clock: on a device far more often than that, where it is emulated some times a second.
const STILL: u32 = 8;

/// The device's waits, as they were at the last look.
#[derive(Default)]
pub(super) struct Device {
    watches: Vec<Arc<dyn Watch>>,
    last: Option<DeviceWait>,
    /// For how many looks it has not moved.
    still: u32,
    wait: Option<Wait>,
}

/// A wait that goes on.
struct Wait {
    /// The ranks that its threads await, a bit each; of more than 64 ranks, the first.
    awaited: u64,
    /// Since when, nanoseconds since 1970: for who reads the ring.
    since: u64,
    /// The same, by a clock that nobody sets; and when it moved last.
    began: Instant,
    moved: Instant,
}

impl Device {
    pub(super) fn new(watches: &[Arc<dyn Watch>]) -> Device {
        Device { watches: watches.to_vec(), ..Device::default() }
    }

    /// Looks, and keeps what was seen. For how long has the device been waiting?
    pub(super) fn look(&mut self, ring: &Ring) -> Option<Duration> {
        let now = self.watches.iter().find_map(|watch| watch.waits())?;
        let before = self.last.replace(now);
        self.still = if before == Some(now) { self.still + 1 } else { 0 };
        if self.still >= STILL || before.is_some_and(|before| before.call != now.call) {
            self.wait = None;
        }
        // One that ended begins anew only if it moves.
        if self.still >= STILL {
            return None;
        }
        let now_is = Instant::now();
        let new = || Wait { awaited: 0, since: clock::unix(), began: now_is, moved: now_is };
        let wait = self.wait.get_or_insert_with(new);
        if self.still == 0 {
            wait.moved = now_is;
        }
        wait.awaited |= 1u64.checked_shl(now.awaited).unwrap_or(0);
        ring.write_wait(now.call, wait.awaited, now.what, wait.since);
        // It grows no older while nothing says that it goes on.
        Some(wait.moved - wait.began)
    }
}
