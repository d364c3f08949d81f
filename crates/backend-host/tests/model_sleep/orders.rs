//! Under loom: which orders the sleep needs. A sleep that nobody ends is a deadlock.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;

use crossover_backend_host::protocol::{Bell, ring, ring_if_marked, sleep_unless};
use loom::sync::Notify;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

/// How the protocol is broken on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Right,
    PublisherUnfenced,
    WaiterUnfenced,
    /// Sleeps without having looked once more.
    Unlooked,
    /// Reads the count of rings after it has looked.
    CountedLate,
}

/// A bell of loom's.
struct Model {
    kind: Kind,
    mark: AtomicBool,
    rings: AtomicU32,
    /// What each waiter sleeps on. A notification waits for its waiter: comparing the count and
    /// falling asleep are one.
    beds: [Notify; 2],
}

impl Model {
    fn new(kind: Kind) -> Self {
        let beds = [Notify::new(), Notify::new()];
        Model { kind, mark: AtomicBool::new(false), rings: AtomicU32::new(0), beds }
    }
}

/// The bell, as one waiter has it.
struct Seen<'a>(&'a Model, usize);

impl Bell for Seen<'_> {
    fn is_marked(&self) -> bool {
        self.0.mark.load(Ordering::Relaxed)
    }

    fn set_mark(&self, marked: bool) {
        self.0.mark.store(marked, Ordering::Relaxed);
    }

    fn rings(&self) -> u32 {
        self.0.rings.load(Ordering::Acquire)
    }

    fn count_ring(&self) {
        self.0.rings.fetch_add(1, Ordering::Release);
    }

    fn wake(&self) {
        self.0.beds.iter().for_each(Notify::notify);
    }

    fn sleep(&self, rings: u32, _: Duration) {
        let rings = if self.0.kind == Kind::CountedLate { self.rings() } else { rings };
        // As a change by nothing, it finds the latest count, as the kernel does.
        while self.0.rings.fetch_add(0, Ordering::AcqRel) == rings {
            self.0.beds[self.1].wait();
        }
    }

    fn fence_publisher(&self) {
        if self.0.kind != Kind::PublisherUnfenced {
            fence(Ordering::SeqCst);
        }
    }
}

/// A rank's arrival, and its bell.
struct Shared {
    arrival: AtomicU32,
    bell: Model,
}

impl Shared {
    fn new(kind: Kind) -> Arc<Self> {
        Arc::new(Shared { arrival: AtomicU32::new(0), bell: Model::new(kind) })
    }

    fn publish(&self, step: u32) {
        self.arrival.store(step, Ordering::Release);
        ring_if_marked(&Seen(&self.bell, 0));
    }

    fn wait(&self, waiter: usize, step: u32) {
        let arrived = || self.arrival.load(Ordering::Acquire) >= step;
        while !arrived() {
            let fence_all = || {
                if self.bell.kind != Kind::WaiterUnfenced {
                    fence(Ordering::SeqCst);
                }
                Duration::MAX
            };
            sleep_unless(&Seen(&self.bell, waiter), fence_all, || {
                self.bell.kind != Kind::Unlooked && arrived()
            });
        }
    }
}

/// Every execution, or all with so many preemptions at most.
fn check(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut loom = loom::model::Builder::new();
    loom.preemption_bound = preemptions;
    loom.check(body);
}

/// One rank publishes, the other waits for each step.
fn a_waiter(kind: Kind, steps: u32, preemptions: Option<usize>) {
    check(preemptions, move || {
        let shared = Shared::new(kind);
        let waiter = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || (1..=steps).for_each(|step| shared.wait(0, step)))
        };
        (1..=steps).for_each(|step| shared.publish(step));
        waiter.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost() {
    a_waiter(Kind::Right, 1, None);
}

/// What is left of the step before, a mark or a ring, does no harm.
#[test]
fn nor_in_the_next_step() {
    a_waiter(Kind::Right, 2, Some(4));
}

#[test]
fn a_publisher_without_a_fence_is_found() {
    assert!(catch_unwind(|| a_waiter(Kind::PublisherUnfenced, 1, None)).is_err());
}

#[test]
fn a_mark_without_a_fence_is_found() {
    assert!(catch_unwind(|| a_waiter(Kind::WaiterUnfenced, 1, None)).is_err());
}

#[test]
fn a_sleep_without_another_look_is_found() {
    assert!(catch_unwind(|| a_waiter(Kind::Unlooked, 1, None)).is_err());
}

#[test]
fn a_count_that_is_read_too_late_is_found() {
    assert!(catch_unwind(|| a_waiter(Kind::CountedLate, 1, None)).is_err());
}

/// The mark of one may be taken away by the ring that the other's brings about.
#[test]
fn two_waiters_share_a_mark() {
    check(Some(3), || {
        let shared = Shared::new(Kind::Right);
        let waiters = [0, 1].map(|waiter| {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || shared.wait(waiter, 1))
        });
        shared.publish(1);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// Who ends all waits rings without looking for a mark, after a release and without a fence.
#[test]
fn an_unasked_ring_is_heard() {
    unasked(true);
}

#[test]
fn an_end_that_does_not_ring_is_found() {
    assert!(catch_unwind(|| unasked(false)).is_err());
}

fn unasked(rings: bool) {
    loom::model(move || {
        let shared = Shared::new(Kind::Right);
        let ended = Arc::new(AtomicBool::new(false));
        let waiter = {
            let (shared, ended) = (Arc::clone(&shared), Arc::clone(&ended));
            loom::thread::spawn(move || {
                let is_over = || ended.load(Ordering::Acquire);
                while !is_over() {
                    sleep_unless(&Seen(&shared.bell, 0), || Duration::MAX, is_over);
                }
            })
        };
        ended.store(true, Ordering::Release);
        if rings {
            ring(&Seen(&shared.bell, 0));
        }
        waiter.join().unwrap();
    });
}
