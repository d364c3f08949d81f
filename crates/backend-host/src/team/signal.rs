//! One thread gives another a number, and the other waits for it: with pauses first, then asleep.
//!
//! A word holds the number and one bit that says that the waiting thread sleeps, or is about to.
//! The waiting thread sets that bit only if the word still has the number that it found wanting,
//! and the sender exchanges the whole word: so either the sender sees the bit, and wakes, or the
//! waiting thread sees the number, and does not sleep. That it sleeps only while the word is as it
//! left it, the futex sees to: a wake between the setting of the bit and the sleep is not lost.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::thread::futex;

/// A shared word that a thread can sleep on. The orders are part of the names, and a model that
/// weakens them must fail.
pub trait Futex {
    /// Loads it; what its sender did before [`swap_release`](Futex::swap_release) is then seen.
    fn load_acquire(&self) -> u32;

    /// Stores `value`, after all that this thread has done so far, and returns what was there.
    fn swap_release(&self, value: u32) -> u32;

    /// Changes it from `current` to `new`, if it still is `current`. It hands nothing over.
    fn compare_exchange_relaxed(&self, current: u32, new: u32) -> bool;

    /// Sleeps until woken, if it is `value` at the moment of falling asleep. May wake unasked.
    fn sleep_while(&self, value: u32);

    /// Wakes the thread that sleeps on it.
    fn wake(&self);
}

/// The number that one thread last gave another; 0 before the first. One thread sends, and one
/// waits.
#[derive(Debug, Default)]
pub struct Signal<F>(F);

/// The number after `number`; they start again when 31 bits are used up.
#[inline]
pub fn following(number: u32) -> u32 {
    number.wrapping_add(1) & (u32::MAX >> 1)
}

/// The bit that says that the waiting thread sleeps.
const ASLEEP: u32 = 1;

impl<F: Futex> Signal<F> {
    /// A signal in this word, which is 0.
    pub fn new(word: F) -> Self {
        Signal(word)
    }

    /// Gives `number`: what this thread did so far is seen by the one that waits for it.
    #[inline]
    pub fn send(&self, number: u32) {
        if self.0.swap_release(number << 1) & ASLEEP != 0 {
            self.0.wake();
        }
    }

    /// Waits until `number` is given: `pauses` pauses, then asleep.
    #[inline]
    pub fn wait(&self, number: u32, pauses: u32) {
        for _ in 0..pauses {
            if self.0.load_acquire() >> 1 == number {
                return;
            }
            std::hint::spin_loop();
        }
        self.sleep(number);
    }

    fn sleep(&self, number: u32) {
        loop {
            let word = self.0.load_acquire();
            if word >> 1 == number {
                return;
            }
            let asleep = word | ASLEEP;
            if word == asleep || self.0.compare_exchange_relaxed(word, asleep) {
                self.0.sleep_while(asleep);
            }
        }
    }
}

impl Futex for AtomicU32 {
    #[inline]
    fn load_acquire(&self) -> u32 {
        self.load(Acquire)
    }

    #[inline]
    fn swap_release(&self, value: u32) -> u32 {
        self.swap(value, Release)
    }

    fn compare_exchange_relaxed(&self, current: u32, new: u32) -> bool {
        self.compare_exchange(current, new, Relaxed, Relaxed).is_ok()
    }

    fn sleep_while(&self, value: u32) {
        // Interrupted, woken, or no longer `value`: the caller looks at the word again.
        let _ = futex::wait(self, futex::Flags::PRIVATE, value, None);
    }

    #[cold]
    fn wake(&self) {
        // A waiting thread that does not sleep yet will not fall asleep.
        let _ = futex::wake(self, futex::Flags::PRIVATE, 1);
    }
}
