//! Sleeping until a rank publishes. It costs a publisher one plain load as long as nobody sleeps.
//!
//! Every rank has a [`Bell`]: a mark, which says that someone may be asleep over it, and a count
//! of its rings. Who waits for a rank reads the count, sets the mark, looks once more whether the
//! wait is over, and sleeps for as long as the count stays what it was. Who publishes looks for
//! the mark; if it is set, it takes it away, counts up, and wakes everyone who sleeps.
//!
//! # Why no wake-up is lost
//!
//! *Marking and publishing.* The waiter stores the mark and then loads the arrival; the publisher
//! stores the arrival and then loads the mark. Release and acquire do not forbid that both load
//! what was there before: the publisher wakes nobody and the waiter sleeps. A full fence between
//! store and load on *both* sides forbids it: of two fences one comes first, and the other side
//! then sees what was stored before it. The publisher cannot afford one, since it publishes in
//! every step and hardly ever has a sleeper. So the waiter, which has time, has the kernel fence
//! all ranks: `membarrier(GLOBAL_EXPEDITED)` returns after each thread that runs in a registered
//! process has passed a full fence. Wherever in its program that catches the publisher, either the
//! arrival is stored before it, and the waiter looks afterwards and sees it, or the mark is looked
//! for after it, and found. The publisher has only to keep the compiler from exchanging the two.
//!
//! *Looking and falling asleep.* A ring in between would wake nobody. But the count was read
//! before the mark was set, and whoever wakes has counted up: the sleep does not begin.
//!
//! *Two waiters, one mark.* The mark of a second waiter may be taken away by the ring that the
//! first one's mark brings about. Then the second had read the count before that ring (otherwise
//! it has seen the mark being taken away, and its own comes later): this ring wakes it too. It
//! looks, and marks again if it has to.
//!
//! *Who rings without having been marked*, to end all waits, need not look for marks: what it
//! wrote before it rang is seen by a waiter that has read the new count, and a waiter that has
//! read the old one does not sleep, or is woken.
//!
//! A mark that nobody needs any more, for its sleeper's time was up, costs one needless ring.

use std::time::Duration;

/// What a rank's peers sleep over. Mark and count start as "not set" and 0. As with
/// [`Word`](super::Word), a model that weakens an order must fail.
pub trait Bell {
    /// Is the mark set? Need not order anything.
    fn is_marked(&self) -> bool;

    /// Sets the mark or takes it away. Need not order anything.
    fn set_mark(&self, marked: bool);

    /// The count of rings. Acquires.
    fn rings(&self) -> u32;

    /// Adds one to the count, which may wrap. Releases.
    fn count_ring(&self);

    /// Wakes everyone who sleeps.
    fn wake(&self);

    /// Sleeps, if the count is `rings`, until woken; at most for `longest`, and less whenever it
    /// likes. Comparing and falling asleep are one to [`wake`](Bell::wake).
    fn sleep(&self, rings: u32, longest: Duration);

    /// Keeps the publisher's store before its load, as far as the other side's fence needs that:
    /// a fence for the compiler, if that one fences all ranks.
    fn fence_publisher(&self);
}

/// To be called after publishing, on the own bell.
#[inline]
pub fn ring_if_marked<B: Bell>(bell: &B) {
    bell.fence_publisher();
    if bell.is_marked() {
        answer(bell);
    }
}

#[cold]
fn answer<B: Bell>(bell: &B) {
    bell.set_mark(false);
    ring(bell);
}

/// Wakes everyone who sleeps over this bell, and keeps awake who is about to.
pub fn ring<B: Bell>(bell: &B) {
    bell.count_ring();
    bell.wake();
}

/// Sleeps over an awaited rank's bell, unless `is_over`. `fence_all` fences every rank, and says
/// how long one may sleep on the strength of that. Returns when the bell rings, when that time is
/// up, or sooner: whoever waits looks again.
pub fn sleep_unless<B: Bell>(
    bell: &B,
    fence_all: impl FnOnce() -> Duration,
    is_over: impl FnOnce() -> bool,
) {
    let rings = bell.rings();
    bell.set_mark(true);
    let longest = fence_all();
    if !is_over() {
        bell.sleep(rings, longest);
    }
}
