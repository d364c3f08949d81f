//! Which names mean one device.

use crossover_core::policy::device_matches;

/// Do these name one device? Evidence and options are written by people: either may be the name in
/// full, `NVIDIA H200`, and the other `H200`.
pub(crate) fn same(a: &str, b: &str) -> bool {
    device_matches(a, b) || device_matches(b, a)
}
