//! A worker: its desk, where jobs are laid, and its life.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;

use rustix::thread::{CpuSet, sched_setaffinity};

use super::Panic;
use super::signal::{Signal, following};

/// A job and the signal for it lie on one cache line, so that a worker gets both at once; 128 bytes,
/// since processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(super) struct Desk {
    begin: Signal<AtomicU32>,
    /// Written by the team before it signals to begin, read by the worker after that.
    job: UnsafeCell<Job>,
    done: Done,
}

#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Done {
    signal: Signal<AtomicU32>,
    /// Written by the worker before it signals that it is done, taken by the team after that.
    panic: UnsafeCell<Option<Panic>>,
}

// SAFETY: the cells are used by one thread at a time, which the signals see to: a worker touches
// them between the two signals of a number alone, the team outside of that.
unsafe impl Sync for Desk {}
// SAFETY: a job's work may be called from any thread, and a panic's message is `Send`.
unsafe impl Send for Desk {}

/// What a worker is to do: its parts of some work, or to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    work: Option<*const (dyn Fn(usize) + Sync)>,
    parts: usize,
    threads: usize,
}

impl Job {
    pub(super) const LEAVE: Job = Job { work: None, parts: 0, threads: 1 };

    pub(super) fn new(work: &(dyn Fn(usize) + Sync), parts: usize, threads: usize) -> Job {
        let work: *const (dyn Fn(usize) + Sync + '_) = work;
        // SAFETY: only the lifetime changes, and whoever assigns the job promises that it holds.
        let work: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        Job { work: Some(work), parts, threads }
    }
}

impl Default for Job {
    fn default() -> Job {
        Job::LEAVE
    }
}

impl Desk {
    /// Lays a job on the desk and tells its worker to begin.
    ///
    /// # Safety
    ///
    /// The worker has done its last job, and what this one borrows lives until it is finished.
    #[inline]
    pub(super) unsafe fn assign(&self, number: u32, job: Job) {
        // SAFETY: the worker is at rest, as the caller promises, and reads after the signal.
        unsafe { *self.job.get() = job };
        self.begin.send(number);
    }

    /// Waits until the job is done; what it panicked with, if it did.
    #[inline]
    pub(super) fn finish(&self, number: u32, pauses: u32) -> Option<Panic> {
        self.done.signal.wait(number, pauses);
        // SAFETY: the worker is at rest again.
        unsafe { (*self.done.panic.get()).take() }
    }
}

/// How a worker lives.
pub(super) struct Habits {
    /// Of its desk; it runs part `index + 1`.
    pub(super) index: usize,
    /// Pauses before it sleeps.
    pub(super) pauses: u32,
    /// Where it runs; `None` where it was started.
    pub(super) processors: Option<CpuSet>,
}

/// Does job after job until it is told to leave.
pub(super) fn serve(desks: &[Desk], habits: &Habits) {
    if let Some(processors) = &habits.processors {
        // If it cannot be, it stays inside the mask that it was started with.
        let _ = sched_setaffinity(None, processors);
    }
    let desk = &desks[habits.index];
    let mut number = 0;
    loop {
        number = following(number);
        desk.begin.wait(number, habits.pauses);
        // SAFETY: the signal has come: the job is written, and stays until this one is done.
        let Job { work, parts, threads } = unsafe { *desk.job.get() };
        let Some(work) = work else { return };
        let mine = (habits.index + 1..parts).step_by(threads);
        // SAFETY: whoever assigned the job keeps its work alive until it is done.
        let done = catch_unwind(AssertUnwindSafe(|| mine.for_each(unsafe { &*work })));
        // SAFETY: the team looks only after the signal below.
        unsafe { *desk.done.panic.get() = done.err() };
        desk.done.signal.send(number);
    }
}

/// Processors as the system takes them. Numbers beyond what it can bind to are left out.
pub(super) fn set(processors: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    let numbers = processors.iter().map(|processor| *processor as usize);
    numbers.filter(|number| *number < CpuSet::MAX_CPU).for_each(|number| set.set(number));
    set
}
