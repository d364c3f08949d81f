//! A library's version, as `ncclGetVersion` tells it.

use std::ffi::c_int;
use std::fmt;

/// Major, minor and patch; ordered by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u16,
    minor: u16,
    patch: u16,
}

impl Version {
    /// A version in parts, such as 2, 25, 1.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// What `ncclGetVersion` tells: 22501 is 2.25.1. Up to 2.8 the minor version had one digit: 2804
    /// is 2.8.4. None for what neither scheme writes.
    #[must_use]
    pub const fn from_number(number: c_int) -> Option<Self> {
        let per_major = match number {
            1000..10_000 => 1000,
            10_000..1_000_000 => 10_000,
            _ => return None,
        };
        // In range: at most 99 each.
        Some(Self {
            major: (number / per_major) as u16,
            minor: (number % per_major / 100) as u16,
            patch: (number % 100) as u16,
        })
    }

    /// As `ncclGetVersion` tells it.
    #[must_use]
    pub const fn number(self) -> c_int {
        let per_major = if self.major <= 2 && self.minor <= 8 { 1000 } else { 10_000 };
        self.major as c_int * per_major + self.minor as c_int * 100 + self.patch as c_int
    }

    /// 2 in 2.25.1.
    #[must_use]
    pub const fn major(self) -> u16 {
        self.major
    }

    /// 25 in 2.25.1.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.minor
    }

    /// 1 in 2.25.1.
    #[must_use]
    pub const fn patch(self) -> u16 {
        self.patch
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_schemes_are_read_and_written() {
        for (number, text) in [
            (22501, "2.25.1"),
            (21903, "2.19.3"),
            (23203, "2.32.3"),
            (2804, "2.8.4"),
            (2708, "2.7.8"),
            (20906, "2.9.6"),
        ] {
            let version = Version::from_number(number).unwrap();
            assert_eq!(version.to_string(), text);
            assert_eq!(version.number(), number);
        }
    }

    #[test]
    fn order_is_that_of_releases_not_of_numbers() {
        let old = Version::from_number(2804).unwrap();
        let mut releases = [21903, 20906, 22501, 2804, 23203, 2708]
            .map(|number| Version::from_number(number).unwrap());
        releases.sort();
        assert_eq!(releases.map(Version::minor), [7, 8, 9, 19, 25, 32]);
        assert!(old < Version::new(2, 9, 6) && Version::new(2, 8, 5) > old);
    }

    #[test]
    fn what_no_release_tells_is_no_version() {
        for number in [c_int::MIN, -1, 0, 999, 1_000_000, c_int::MAX] {
            assert_eq!(Version::from_number(number), None, "{number}");
        }
    }
}
