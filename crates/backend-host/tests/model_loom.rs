//! The rendezvous under loom: every execution that the memory model allows, for two ranks and a
//! few steps. The negative controls show that the model sees what it is there to see.

use std::panic::catch_unwind;
use std::sync::Arc;

use crossover_backend_host::protocol::{Board, Met, Once, Patience, Posted, Step, Steps, Word};
use loom::cell::UnsafeCell;

use loom::sync::atomic::{AtomicU64, Ordering};

const RANKS: u32 = 2;
const TAG: u32 = 7;
const STEPS: u64 = 3;

/// A word of loom's, published with release or, where that is broken on purpose, relaxed.
struct Flag<const RELEASE: bool>(AtomicU64);

impl<const RELEASE: bool> Word for Flag<RELEASE> {
    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn store_release(&self, value: u64) {
        self.0.store(value, if RELEASE { Ordering::Release } else { Ordering::Relaxed });
    }

    fn compare_exchange(&self, current: u64, new: u64) -> bool {
        self.0.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Plain memory of loom's, which reports an access that is not ordered after the last write.
struct Slot(UnsafeCell<u64>);

// SAFETY: loom runs one thread at a time.
unsafe impl Sync for Slot {}

impl Slot {
    fn write(&self, value: u64) {
        // SAFETY: that nobody else uses it now is the protocol's claim, which loom checks.
        self.0.with_mut(|to| unsafe { *to = value });
    }

    fn read(&self) -> u64 {
        // SAFETY: as above.
        self.0.with(|from| unsafe { *from })
    }
}

/// Words and slots of both ranks, by parity.
struct Memory<const RELEASE: bool> {
    words: [[Flag<RELEASE>; 2]; 2],
    slots: [[Slot; 2]; 2],
}

impl<const RELEASE: bool> Memory<RELEASE> {
    fn new() -> Self {
        Memory {
            words: std::array::from_fn(|_| std::array::from_fn(|_| Flag(AtomicU64::new(0)))),
            slots: std::array::from_fn(|_| std::array::from_fn(|_| Slot(UnsafeCell::new(0)))),
        }
    }
}

impl<const RELEASE: bool> Board for Memory<RELEASE> {
    type Word = Flag<RELEASE>;

    fn arrival(&self, rank: u32, parity: usize) -> &Flag<RELEASE> {
        &self.words[rank as usize][parity]
    }
}

struct Yield;

impl Patience for Yield {
    type Error = std::convert::Infallible;

    fn pause(&mut self, _: Step) -> Result<(), Self::Error> {
        loom::thread::yield_now();
        Ok(())
    }
}

/// How a rank is broken on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Rank {
    Right,
    /// One slot where the protocol has two.
    SingleBuffered,
    /// Reads without having met.
    Unmet,
    /// Reads a step's slots while it fills its own for the next, as it may.
    Lagging,
    /// Reads them after it has published that.
    TooLate,
}

fn run<const RELEASE: bool>(kind: Rank) {
    loom::model(move || {
        let memory = Arc::new(Memory::<RELEASE>::new());
        let other = {
            let memory = Arc::clone(&memory);
            loom::thread::spawn(move || rank(kind, 1, &memory))
        };
        rank(kind, 0, &memory);
        other.join().unwrap();
    });
}

fn rank<const RELEASE: bool>(kind: Rank, me: u32, memory: &Memory<RELEASE>) {
    let mut steps = Steps::new(me, RANKS);
    for number in 1..=STEPS {
        let step = steps.begin(TAG);
        let slot = if kind == Rank::SingleBuffered { 0 } else { step.parity() };
        let peer = 1 - me;
        let read_last = || {
            if number > 1 {
                let last = memory.slots[peer as usize][1 - slot].read();
                assert_eq!(last, value(peer, number - 1));
            }
        };
        memory.slots[me as usize][slot].write(value(me, number));
        if kind == Rank::Lagging {
            read_last();
        }
        if kind != Rank::Unmet {
            steps.publish(step, memory);
            let Ok(met) = steps.meet(step, memory, &mut Yield);
            assert_eq!(met, Met::Alike);
        }
        if kind == Rank::TooLate {
            read_last();
        }
        if matches!(kind, Rank::Lagging | Rank::TooLate) {
            continue;
        }
        assert_eq!(memory.slots[peer as usize][slot].read(), value(peer, number));
    }
}

fn value(rank: u32, number: u64) -> u64 {
    number * 10 + u64::from(rank)
}

#[test]
fn no_slot_is_read_before_it_is_written_nor_written_while_it_is_read() {
    run::<true>(Rank::Right);
}

#[test]
fn a_step_is_read_while_the_next_is_filled() {
    run::<true>(Rank::Lagging);
}

#[test]
fn a_read_after_the_next_is_published_is_found() {
    assert!(catch_unwind(|| run::<true>(Rank::TooLate)).is_err());
}

#[test]
fn a_relaxed_flag_is_found() {
    assert!(catch_unwind(|| run::<false>(Rank::Right)).is_err());
}

#[test]
fn a_single_buffer_is_found() {
    assert!(catch_unwind(|| run::<true>(Rank::SingleBuffered)).is_err());
}

#[test]
fn a_skipped_rendezvous_is_found() {
    assert!(catch_unwind(|| run::<true>(Rank::Unmet)).is_err());
}

/// A rank that comes with another tag is noticed by both, whoever is first.
#[test]
fn unlike_tags_are_told() {
    loom::model(|| {
        let memory = Arc::new(Memory::<true>::new());
        let meet = |me: u32, memory: &Memory<true>| {
            let mut steps = Steps::new(me, RANKS);
            let tags = [(TAG, Met::Alike), (TAG + me, Met::Unlike)];
            for (tag, expected) in tags {
                let step = steps.begin(tag);
                steps.publish(step, memory);
                let Ok(met) = steps.meet(step, memory, &mut Yield);
                assert_eq!(met, expected);
            }
        };
        let other = {
            let memory = Arc::clone(&memory);
            loom::thread::spawn(move || meet(1, &memory))
        };
        meet(0, &memory);
        other.join().unwrap();
    });
}

#[test]
fn one_verdict_wins_and_is_read_whole() {
    verdicts::<true>();
}

#[test]
fn a_relaxed_verdict_is_found() {
    assert!(catch_unwind(verdicts::<false>).is_err());
}

fn verdicts<const RELEASE: bool>() {
    loom::model(|| {
        let shared = Arc::new((Flag::<RELEASE>(AtomicU64::new(0)), Slot(UnsafeCell::new(0))));
        let post = |shared: &(Flag<RELEASE>, Slot), mine: u64| {
            let once = Once(&shared.0);
            let posted = once.post(|| shared.1.write(mine));
            if once.is_written() {
                let read = shared.1.read();
                assert!(if posted == Posted::Ours { read == mine } else { read == 3 - mine });
            }
            posted
        };
        let other = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || post(&shared, 1))
        };
        let mine = post(&shared, 2);
        assert_ne!(mine, other.join().unwrap());
    });
}
