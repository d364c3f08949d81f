//! The rendezvous of ranks through shared words, apart from what the words lie in and how one
//! waits: the sessions run it over atomics in shared memory, the models in `tests/` run the same
//! code under loom and shuttle.
//!
//! # The protocol
//!
//! A group's life is a sequence of *steps*, numbered 1, 2, 3, ... on every rank alike. No number
//! is ever used twice, and the number of a step says nothing about sizes, ops or calls. In step
//! `s`, each rank
//!
//! 1. writes what it contributes into its own slot of parity `s % 2`;
//! 2. *publishes* `s` in its own word of that parity (release);
//! 3. waits until every rank's word of that parity holds `s` (acquire);
//! 4. reads its peers' slots of parity `s % 2`.
//!
//! # Why no slot is overwritten while a peer still reads it
//!
//! Rank A writes its slot for step `s` after it has seen, in step `s - 1`, that every peer had
//! published `s - 1`. A peer B publishes `s - 1` after it has finished reading for step `s - 2`,
//! the last step that used this slot: B's reads are ordered before B's release, B's release
//! before A's acquire, and that before A's write. So two slots suffice, and nobody need say "I
//! have read". The argument mentions neither calls nor ops: it holds across any sequence of them,
//! as long as every rank takes the same number of steps, which the comparison in the first step
//! of each call sees to.
//!
//! Nor does it mention where a slot lies: data may be put anywhere that the step before has not put
//! its own. So some go round a ring, in which a place is used again later than that.
//!
//! # What a word holds
//!
//! The low half is the step's number modulo 2^32, the high half the *tag* of the call that its
//! rank makes. A word of step `s` cannot run ahead: its owner writes it next in step `s + 2`, after
//! having seen that everyone published `s + 1`, hence after everyone left step `s`. So whoever
//! waits for `s` finds `s - 2` or `s` there, and the low half tells the two apart. If a peer is
//! there with another tag, it makes another call: [`Steps::meet`] says so, at no cost, since
//! the word is compared as one with the own.

mod once;
mod sleep;
mod steps;

pub use self::once::{Once, Posted};
pub use self::sleep::{Bell, ring, ring_if_marked, sleep_unless};
pub use self::steps::{Board, Met, Patience, Step, Steps};

/// A shared 64-bit word. The orders are part of the names, and a model that weakens them must
/// fail.
pub trait Word {
    /// Loads it; what its writer did before [`store_release`](Word::store_release) is then seen.
    fn load_acquire(&self) -> u64;

    /// Stores it, after all that this rank has written so far.
    fn store_release(&self, value: u64);

    /// Changes it from `current` to `new`, if it still is `current`; true if it was. Acquires and
    /// releases.
    fn compare_exchange(&self, current: u64, new: u64) -> bool;
}

impl Word for std::sync::atomic::AtomicU64 {
    #[inline]
    fn load_acquire(&self) -> u64 {
        self.load(std::sync::atomic::Ordering::Acquire)
    }

    #[inline]
    fn store_release(&self, value: u64) {
        self.store(value, std::sync::atomic::Ordering::Release);
    }

    fn compare_exchange(&self, current: u64, new: u64) -> bool {
        use std::sync::atomic::Ordering::{AcqRel, Acquire};
        std::sync::atomic::AtomicU64::compare_exchange(self, current, new, AcqRel, Acquire).is_ok()
    }
}
