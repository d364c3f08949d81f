//! Switches for `tests/benches/guarantees.rs`, which shows what a guarantee costs by doing without it.
//! They exist with the feature `ablation` alone; in every other build nothing can be switched off and
//! nothing asks.

/// What can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Guarantee {
    /// That the policy decides who runs a call: the last decision is used.
    Decision = 1,
    /// That what ran is counted.
    Counters = 2,
    /// That ranks which make different calls learn so.
    Fingerprint = 4,
    /// That calls are recorded.
    Record = 8,
}

/// Has a bench switched it off?
#[cfg(not(feature = "ablation"))]
#[inline(always)]
pub const fn is_off(_: Guarantee) -> bool {
    false
}

/// Has a bench switched it off?
#[cfg(feature = "ablation")]
#[inline(always)]
pub fn is_off(guarantee: Guarantee) -> bool {
    OFF.load(std::sync::atomic::Ordering::Relaxed) & guarantee as u8 != 0
}

/// Switches these off and all others on, in this process.
#[cfg(feature = "ablation")]
pub fn switch_off(guarantees: &[Guarantee]) {
    let bits = guarantees.iter().fold(0, |bits, guarantee| bits | *guarantee as u8);
    OFF.store(bits, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(feature = "ablation")]
static OFF: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);
