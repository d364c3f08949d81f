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
    /// What there is to look at, and what it told last: a word that is told stays when its wait is over.
    watches: Vec<(Arc<dyn Watch>, Option<DeviceWait>)>,
    /// For how many looks nothing has moved.
    still: u32,
    wait: Option<Wait>,
}

/// A wait that goes on.
struct Wait {
    /// As it was told last.
    told: DeviceWait,
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
        let watches = watches.iter().map(|watch| (Arc::clone(watch), None)).collect();
        Device { watches, ..Device::default() }
    }

    /// Looks, and keeps what was seen. For how long has the device been waiting?
    pub(super) fn look(&mut self, ring: &Ring) -> Option<Duration> {
        match self.moved() {
            Some(told) => self.go_on(told),
            None => self.still += 1,
        }
        if self.still >= STILL {
            self.wait = None;
        }
        let wait = self.wait.as_ref()?;
        ring.write_wait(wait.told.call, wait.awaited, wait.told.what, wait.since);
        // It grows no older while nothing says that it goes on.
        Some(wait.moved - wait.began)
    }

    /// What is told now that was not told at the last look.
    fn moved(&mut self) -> Option<DeviceWait> {
        let mut moved = None;
        for (watch, last) in &mut self.watches {
            let now = watch.waits();
            if now != *last {
                moved = moved.or(now);
            }
            *last = now;
        }
        moved
    }

    fn go_on(&mut self, told: DeviceWait) {
        let now = Instant::now();
        let new = Wait { told, awaited: 0, since: clock::unix(), began: now, moved: now };
        let same = self.wait.take().filter(|wait| wait.told.call == told.call);
        let mut wait = same.unwrap_or(new);
        (wait.told, wait.moved) = (told, now);
        wait.awaited |= 1u64.checked_shl(told.awaited).unwrap_or(0);
        (self.wait, self.still) = (Some(wait), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::about::About;

    struct Told(Mutex<Option<DeviceWait>>);

    impl Watch for Told {
        fn waits(&self) -> Option<DeviceWait> {
            *self.0.lock().expect("no test panics with it")
        }
    }

    #[test]
    fn a_wait_that_is_over_hides_none_of_another_backend() {
        let (ring, _) = Ring::make(None, About::sample(0, &["n", "n"])).expect("memory");
        let watches = [(); 2].map(|()| Arc::new(Told(Mutex::new(None))));
        let mut device = Device::new(&watches.clone().map(|watch| watch as Arc<dyn Watch>));
        let tell = |nth: usize, call, awaited, moment| {
            let wait = DeviceWait { call, awaited, what: "data", moment };
            *watches[nth].0.lock().expect("no test panics with it") = Some(wait);
        };
        assert_eq!(device.look(&ring), None);
        tell(0, 1, 1, 1);
        assert_eq!(device.look(&ring), Some(Duration::ZERO));
        let looks = (0..STILL).map(|_| device.look(&ring)).collect::<Vec<_>>();
        assert!(looks[..STILL as usize - 1].iter().all(|look| *look == Some(Duration::ZERO)));
        assert_eq!(looks[STILL as usize - 1], None, "it is over, and its word stays");
        tell(1, 7, 0, 1);
        assert!(device.look(&ring).is_some());
        tell(1, 7, 1, 2);
        std::thread::sleep(Duration::from_millis(2));
        assert!(device.look(&ring).is_some_and(|age| age >= Duration::from_millis(2)));
        let wait = device.wait.as_ref().expect("it goes on");
        assert_eq!((wait.told.call, wait.awaited), (7, 0b11));
    }
}
