//! What the rank's device waits for: kernels tell it in memory, and it is kept in the ring, where peers and
//! whoever reads later find it.

use std::sync::Arc;
use std::time::Duration;

use crossover_core::backend::{DeviceWait, Watch};

use crate::clock;
use crate::ring::Ring;

/// The device's waits, as they were at the last look.
#[derive(Default)]
pub(super) struct Device {
    watches: Vec<Arc<dyn Watch>>,
    last: Option<DeviceWait>,
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
        // One that does not move has come to its end.
        if before == Some(now) {
            self.awaited = 0;
            return None;
        }
        if before.is_none_or(|before| before.call != now.call) || self.awaited == 0 {
            (self.awaited, self.since) = (0, clock::unix());
        }
        self.awaited |= 1u64.checked_shl(now.awaited).unwrap_or(0);
        ring.write_wait(now.call, self.awaited, now.what, self.since);
        Some(Duration::from_nanos(clock::unix().saturating_sub(self.since)))
    }
}
