//! More than one thread of a rank for the bytes of large messages.
//!
//! A [`Team`] is the thread that calls and workers that are started once. [`Team::run`] has each do
//! its part of a piece of work and returns when all of it is done. Workers never wait for a peer
//! rank: a part is copying and reducing alone. Between two pieces of work a worker pauses for a few
//! microseconds, since the next window of a message follows soon, and then sleeps, so that an idle
//! group burns nothing.
//!
//! [`Signal`] is how one thread tells another to begin, and is told that it is done; it is generic
//! so that the model checker runs the very same code. [`cut`] makes the parts.

mod cut;
mod signal;
mod worker;

#[cfg(test)]
mod tests;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

pub use self::cut::cut;
pub use self::signal::{Futex, Signal, following};
use self::worker::{Desk, Habits, Job};

/// The threads of one rank.
#[derive(Debug)]
pub struct Team {
    workers: Vec<Worker>,
    desks: Arc<[Desk]>,
    /// Pauses before the caller sleeps.
    pauses: u32,
}

/// A worker, as its team knows it. Its desk has the same index.
#[derive(Debug)]
struct Worker {
    /// The number of its last job; it has done that one, whenever no `run` is under way.
    number: u32,
}

impl Team {
    /// Starts the workers: one thread less than `threads`, since the caller is one of them.
    ///
    /// `processors` are those that the team has to itself. Workers are bound to them, all of a
    /// team to the same set: the kernel places a worker as it wakes, and so it never queues behind
    /// the caller or one of the engine's own threads while another processor idles. If there are
    /// fewer than threads, or they are `None`, since other ranks use them too, workers stay where
    /// the calling thread may run, and sleep at once rather than pause: a pause would keep from
    /// running what it waits for.
    ///
    /// # Errors
    ///
    /// The system starts no more threads.
    pub fn new(threads: usize, processors: Option<&[u32]>) -> io::Result<Team> {
        let processors = processors.filter(|processors| processors.len() >= threads);
        let pauses = if processors.is_some() { PAUSES } else { 0 };
        let workers = threads.saturating_sub(1);
        let desks: Arc<[Desk]> = (0..workers).map(|_| Desk::default()).collect();
        let mut team = Team { workers: Vec::with_capacity(workers), desks, pauses };
        for index in 0..workers {
            let habits = Habits { index, pauses, processors: processors.map(worker::set) };
            let desks = Arc::clone(&team.desks);
            std::thread::Builder::new()
                .name(format!("crossover-{}", index + 1))
                .spawn(move || worker::serve(&desks, &habits))?;
            team.workers.push(Worker { number: 0 });
        }
        Ok(team)
    }

    /// How many threads it has, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `work` for each of the parts 0, 1, .. `parts - 1`, and returns when all are done: part
    /// 0 on this thread, each further one on a worker, and where there are more parts than threads,
    /// every thread goes on with the next of its turn. What this thread wrote before, each part
    /// sees; what the parts wrote, this thread sees afterwards. Allocates nothing.
    ///
    /// # Panics
    ///
    /// If a part panics, with its message, after the others are done; with this thread's own if it
    /// is one of several. The team can be used again.
    pub fn run(&mut self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let threads = self.threads();
        let busy = parts.min(threads).saturating_sub(1);
        if busy == 0 {
            (0..parts).for_each(work);
            return;
        }
        let job = Job::new(work, parts, threads);
        for (worker, desk) in self.workers.iter_mut().zip(&*self.desks).take(busy) {
            worker.number = following(worker.number);
            // SAFETY: the worker has done its last job; and this function does not return, or
            // unwind, before the worker has done this one, since `finish` follows for each below.
            unsafe { desk.assign(worker.number, job) };
        }
        // The workers hold a borrow of the caller's: a panic has to wait for them as well.
        let mine = catch_unwind(AssertUnwindSafe(|| (0..parts).step_by(threads).for_each(work)));
        let mut panic = mine.err();
        for (worker, desk) in self.workers.iter().zip(&*self.desks).take(busy) {
            let theirs = desk.finish(worker.number, self.pauses);
            match panic {
                None => panic = theirs,
                // Left alone: what it is made of might panic again as it is dropped, and end this
                // function before the other workers are done.
                Some(_) => std::mem::forget(theirs),
            }
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

/// Tells the workers to end, and does not wait for it.
impl Drop for Team {
    fn drop(&mut self) {
        for (worker, desk) in self.workers.iter().zip(&*self.desks) {
            // SAFETY: the worker has done its last job; this one borrows nothing.
            unsafe { desk.assign(following(worker.number), Job::LEAVE) };
        }
    }
}

/// About as long as it takes to sleep and be woken, a few microseconds: so, whatever comes, waiting
/// costs at most twice what it had to.
const PAUSES: u32 = 300;

/// What a part panicked with.
type Panic = Box<dyn Any + Send>;
