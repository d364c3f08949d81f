//! The processor's counter, which a record's time is taken from: asking the kernel's clock costs three
//! times what the rest of a record does. Two moments on all clocks, far apart, tell ticks as times.

use rustix::time::{ClockId, clock_gettime};

/// A moment on three clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The counter.
    pub(crate) ticks: u64,
    /// Nanoseconds of the monotonic clock.
    pub(crate) monotonic: u64,
    /// Nanoseconds since 1970.
    pub(crate) unix: u64,
}

impl Moment {
    /// Now.
    pub(crate) fn now() -> Moment {
        Moment { ticks: ticks(), monotonic: nanoseconds(ClockId::Monotonic), unix: unix() }
    }

    pub(crate) fn words(self) -> [u64; 3] {
        [self.ticks, self.monotonic, self.unix]
    }

    pub(crate) fn from_words([ticks, monotonic, unix]: [u64; 3]) -> Moment {
        Moment { ticks, monotonic, unix }
    }
}

/// Nanoseconds since 1970.
pub(crate) fn unix() -> u64 {
    nanoseconds(ClockId::Realtime)
}

/// The counter, which runs evenly and is the same on all processors of a machine.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it, and it has no effect.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let ticks;
        // SAFETY: the virtual counter is readable in user mode under Linux, and has no effect.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        return ticks;
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    nanoseconds(ClockId::Monotonic)
}

/// When `ticks` was, in nanoseconds since 1970, by two moments; by the first alone, if they are one.
pub(crate) fn told(ticks: u64, first: Moment, last: Moment) -> u64 {
    let span = last.ticks.wrapping_sub(first.ticks) as f64;
    // Times since 1970 may be set; the monotonic clock is not.
    let length = last.monotonic.saturating_sub(first.monotonic) as f64;
    let since = ticks.wrapping_sub(first.ticks) as i64 as f64;
    match span > 0.0 && length > 0.0 {
        true => first.unix.saturating_add_signed((since * length / span) as i64),
        false => first.unix,
    }
}

/// Now, on the scale of [`told`] by this first moment: the time of day may have been set since then.
pub(crate) fn now(first: Moment) -> u64 {
    let since = nanoseconds(ClockId::Monotonic).saturating_sub(first.monotonic);
    first.unix.saturating_add(since)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_told_as_times() {
        let first = Moment::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (ticks, unix) = (ticks(), unix());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let told = told(ticks, first, Moment::now());
        assert!(told.abs_diff(unix) < 2_000_000, "{told} is not {unix}");
        assert_eq!(super::told(5, first, first), first.unix);
    }

    #[test]
    fn a_clock_that_is_set_makes_nothing_older() {
        let mut first = Moment::now();
        // The time of day was set forward by an hour after the first moment.
        first.unix -= 3_600_000_000_000;
        std::thread::sleep(std::time::Duration::from_millis(20));
        let last = Moment::now();
        let age = now(first).saturating_sub(super::told(last.ticks, first, last));
        assert!(age < 5_000_000_000, "the last look seems {age} ns old");
    }
}
