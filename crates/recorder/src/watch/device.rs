//! What the rank's device waits for: kernels tell it in memory, and it is kept in the ring, where peers and
//! whoever reads later find it.

use std::sync::Arc;
use std::time::Duration;

use crossover_core::backend::{DeviceWait, Watch};

use crate::clock;
use crate::ring::Ring;

/// A wait that has not moved for so many looks has come to its end. Threads that wait tell so each time they look
/// at the clock: on a device far more often than that, where it is emulated some times a second.
const STILL: u32 = 4;

/// The device's waits, as they were at the last look.
#[derive(Default)]
pub(super) struct Device {
    watches: Vec<Arc<dyn Watch>>,
    last: Option<DeviceWait>,
    /// For how many looks it has not moved.
    still: u32,
    /// The wait that goes on: the ranks that its threads await, a bit each, and since when.
    awaited: u64,
    since: u64,
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
        if self.still >= STILL {
            self.awaited = 0;
            return None;
        }
        let is_another = before.is_none_or(|before| before.call != now.call);
        if is_another || self.awaited == 0 && self.still == 0 {
            (self.awaited, self.since) = (0, clock::unix());
        }
        self.awaited |= 1u64.checked_shl(now.awaited).unwrap_or(0);
        ring.write_wait(now.call, self.awaited, now.what, self.since);
        Some(Duration::from_nanos(clock::unix().saturating_sub(self.since)))
    }
}
