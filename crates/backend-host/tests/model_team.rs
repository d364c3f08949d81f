//! The hand-over inside a team under loom: every execution that the memory model allows, for one
//! worker, its sleep and its wake. The negative controls show that the model sees
//! what it is there to see.

use std::panic::catch_unwind;
use std::sync::Arc;

use crossover_backend_host::team::{Futex, Signal, following};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

/// What of a word is broken on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Word {
    Right,
    /// Sends without release.
    Relaxed,
    /// Sees what was sent without acquire.
    Unacquired,
    /// Falls asleep whatever the word has become.
    SleepsUnchecked,
    /// Says that it sleeps whatever the word has become.
    MarksUnchecked,
    /// Sleeps without having said so.
    Unmarked,
    /// Wakes nobody.
    Mute,
}

/// A word of loom's, and a futex made of a lock: looking at the word and falling asleep are one
/// step to whoever wakes, as the kernel promises.
struct Bed {
    kind: Word,
    word: AtomicU32,
    queue: Mutex<()>,
    woken: Condvar,
}

impl Bed {
    fn new(kind: Word) -> Self {
        Bed { kind, word: AtomicU32::new(0), queue: Mutex::new(()), woken: Condvar::new() }
    }
}

impl Futex for Bed {
    fn load_acquire(&self) -> u32 {
        let is_broken = self.kind == Word::Unacquired;
        self.word.load(if is_broken { Ordering::Relaxed } else { Ordering::Acquire })
    }

    fn swap_release(&self, value: u32) -> u32 {
        let is_broken = self.kind == Word::Relaxed;
        self.word.swap(value, if is_broken { Ordering::Relaxed } else { Ordering::Release })
    }

    fn compare_exchange_relaxed(&self, current: u32, new: u32) -> bool {
        match self.kind {
            Word::MarksUnchecked => {
                self.word.store(new, Ordering::Relaxed);
                true
            }
            Word::Unmarked => self.word.load(Ordering::Relaxed) == current,
            _ => self
                .word
                .compare_exchange(current, new, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok(),
        }
    }

    fn sleep_while(&self, value: u32) {
        let queue = self.queue.lock().unwrap();
        let now = self.word.load(Ordering::Relaxed);
        let is_wanted = match self.kind {
            Word::SleepsUnchecked => true,
            // The bit is not there to be seen.
            Word::Unmarked => now == value & !1,
            _ => now == value,
        };
        if is_wanted {
            drop(self.woken.wait(queue).unwrap());
        }
    }

    fn wake(&self) {
        if self.kind != Word::Mute {
            drop(self.queue.lock().unwrap());
            self.woken.notify_one();
        }
    }
}

/// Plain memory of loom's, which reports an access that is not ordered after the last write.
struct Cell(UnsafeCell<u32>);

// SAFETY: loom runs one thread at a time.
unsafe impl Sync for Cell {}

impl Cell {
    fn write(&self, value: u32) {
        // SAFETY: that nobody else uses it now is the protocol's claim, which loom checks.
        self.0.with_mut(|to| unsafe { *to = value });
    }

    fn read(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|from| unsafe { *from })
    }
}

/// As a team's: a job and the signal for it, a result and the signal for that.
struct Desk {
    begin: Signal<Bed>,
    job: Cell,
    done: Signal<Bed>,
    result: Cell,
}

/// How much is searched. Two jobs show that the second waits for the first; of them, executions
/// with more than so many preemptions are left out, or it takes minutes.
#[derive(Clone, Copy)]
enum Search {
    OneJob,
    TwoJobs { preemptions: usize },
}

/// One thread lays jobs on the desk and reads results; the other does them.
fn run(begin: Word, done: Word, search: Search, pauses: u32) {
    let mut model = loom::model::Builder::new();
    let rounds = match search {
        Search::OneJob => 1,
        Search::TwoJobs { preemptions } => {
            model.preemption_bound = Some(preemptions);
            2
        }
    };
    model.check(move || {
        let desk = Arc::new(Desk {
            begin: Signal::new(Bed::new(begin)),
            job: Cell(UnsafeCell::new(0)),
            done: Signal::new(Bed::new(done)),
            result: Cell(UnsafeCell::new(0)),
        });
        let worker = {
            let desk = Arc::clone(&desk);
            loom::thread::spawn(move || {
                let mut number = 0;
                for _ in 0..rounds {
                    number = following(number);
                    desk.begin.wait(number, pauses);
                    desk.result.write(desk.job.read() + 1);
                    desk.done.send(number);
                }
            })
        };
        let mut number = 0;
        for round in 1..=rounds {
            number = following(number);
            desk.job.write(round * 10);
            desk.begin.send(number);
            desk.done.wait(number, pauses);
            assert_eq!(desk.result.read(), round * 10 + 1);
        }
        worker.join().unwrap();
    });
}

#[track_caller]
fn is_found(kind: Word) {
    let search = Search::TwoJobs { preemptions: 3 };
    // In either direction.
    assert!(catch_unwind(|| run(kind, Word::Right, search, 0)).is_err());
    assert!(catch_unwind(|| run(Word::Right, kind, search, 0)).is_err());
}

#[test]
fn a_job_is_handed_over_and_nobody_sleeps_on() {
    run(Word::Right, Word::Right, Search::OneJob, 0);
    run(Word::Right, Word::Right, Search::OneJob, 1);
}

#[test]
fn jobs_follow_each_other() {
    run(Word::Right, Word::Right, Search::TwoJobs { preemptions: 3 }, 0);
    run(Word::Right, Word::Right, Search::TwoJobs { preemptions: 3 }, 1);
}

#[test]
fn a_relaxed_signal_is_found() {
    is_found(Word::Relaxed);
}

#[test]
fn a_signal_seen_without_acquire_is_found() {
    is_found(Word::Unacquired);
}

#[test]
fn a_sleep_without_a_last_look_is_found() {
    is_found(Word::SleepsUnchecked);
}

#[test]
fn a_mark_that_overwrites_is_found() {
    is_found(Word::MarksUnchecked);
}

#[test]
fn a_sleep_that_nobody_knows_of_is_found() {
    is_found(Word::Unmarked);
}

#[test]
fn a_missing_wake_is_found() {
    is_found(Word::Mute);
}

#[test]
fn numbers_start_again_after_31_bits() {
    assert_eq!(following(0), 1);
    assert_eq!(following(u32::MAX / 2 - 1), u32::MAX / 2);
    assert_eq!(following(u32::MAX / 2), 0);
}
