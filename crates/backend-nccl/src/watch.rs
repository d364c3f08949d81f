//! A thread for each session that sees to it that nothing hangs without a word. It looks whether
//! the library reports an error, whether a peer's process is gone, and whether calls get done; when
//! the group has ended, for whatever reason, it aborts the communicator, so that kernels that spin
//! come to an end.
//!
//! How far a stream has come is asked through a stream of this thread's own, which waits for an
//! event behind the last eager call. That disturbs no capture: a recorded event and a stream that
//! waits for one are what captures allow others, and the driver asks how far a stream is with this
//! thread's capture mode relaxed. The engine's streams are not touched: they may be gone.
//!
//! A call that the library does not return from is seen as well: its thread says so before it enters.
//!
//! On one node ranks tell one another which calls they have made. There the deadline is for a peer
//! that has not made a call; a call that all have made has ten deadlines, since what is queued before
//! it on a device takes its time too. Across nodes nobody tells, and the deadline is for both.
//!
//! Replays of graphs are the engine's own, and nothing here sees them begin: of them a peer that is
//! gone and an error of the library are noticed, and no deadline is.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossover_bootstrap::liveness::Liveness;
use crossover_core::backend::EnqueueError;
use crossover_core::call::Op;
use crossover_device::error::DeviceError;
use crossover_device::stream::{Event, Stream};

use crate::calls::{Maker, of_device};
use crate::comm::Comm;
use crate::ends::Ends;
use crate::parting;
use crate::window::Windows;

/// Between looks.
pub(crate) const PATIENCE: Duration = Duration::from_micros(200);
const INTERVAL: Duration = Duration::from_millis(10);
/// Deadlines after which a call that every rank has made is given up. It may be behind long work of
/// the engine's own, which nothing here can tell from a kernel that hangs: with the usual deadline
/// of a minute that work may take ten.
const HUNG: u32 = 10;

/// What the session and its watch have together.
pub(crate) struct Shared {
    // First: what runs is ended before the memory that it uses is given back.
    pub(crate) comm: Arc<Comm>,
    pub(crate) ends: Arc<Ends>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) liveness: Option<Liveness>,
    pub(crate) maker: Maker,
    pub(crate) windows: Option<Windows>,
    /// Behind the last eager call.
    pub(crate) behind: Event,
    pub(crate) last: Last,
    pub(crate) deadline: Duration,
    /// Waits for that event.
    pub(crate) probe: Stream,
}

/// Where this rank is with its calls.
pub(crate) struct Last {
    began: Instant,
    /// The last eager call, which the event is behind.
    made: Mark,
    /// The call that the library, or the driver, has not returned from.
    inside: Mark,
}

/// A call; 0 is none.
#[derive(Default)]
struct Mark {
    seq: AtomicU64,
    /// Nanoseconds from `began`. Written before `seq`: whoever reads it behind `seq` reads no time
    /// before that call.
    at: AtomicU64,
    op: AtomicU8,
}

impl Last {
    pub(crate) fn new() -> Last {
        Last { began: Instant::now(), made: Mark::default(), inside: Mark::default() }
    }

    /// Was there no call yet?
    pub(crate) fn is_none(&self) -> bool {
        self.seq() == 0
    }

    /// The event is behind this call now.
    pub(crate) fn note(&self, seq: u64, op: Op) {
        self.mark(&self.made, seq, op);
    }

    /// This call is about to enter the library, which may wait for peers there: it connects an
    /// algorithm when it is first used.
    pub(crate) fn enter(&self, seq: u64, op: Op) {
        self.mark(&self.inside, seq, op);
    }

    /// It has returned.
    pub(crate) fn leave(&self) {
        self.inside.seq.store(0, Release);
    }

    fn mark(&self, mark: &Mark, seq: u64, op: Op) {
        mark.at.store(self.began.elapsed().as_nanos() as u64, Relaxed);
        mark.op.store(op as u8, Relaxed);
        mark.seq.store(seq, Release);
    }

    /// The last eager call.
    fn seq(&self) -> u64 {
        self.made.seq.load(Acquire)
    }

    fn since(&self, mark: &Mark) -> Instant {
        self.began + Duration::from_nanos(mark.at.load(Relaxed))
    }
}

impl Mark {
    /// What it is, for messages.
    fn step(&self) -> String {
        let op = Op::NAMES.get(usize::from(self.op.load(Relaxed)));
        format!("nccl, {}", op.unwrap_or(&"?"))
    }
}

/// Wakes the watch, and sends it away.
pub(crate) struct Bell {
    leave: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    pub(crate) fn new() -> Arc<Bell> {
        Arc::new(Bell { leave: Mutex::new(false), rung: Condvar::new() })
    }

    /// There is something to look at.
    pub(crate) fn ring(&self) {
        self.rung.notify_all();
    }

    /// The session is over.
    pub(crate) fn leave(&self) {
        *self.leave.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rung.notify_all();
    }

    /// Sleeps until it is time for a look. Is it time to go?
    fn sleep(&self) -> bool {
        let leave = self.leave.lock().unwrap_or_else(PoisonError::into_inner);
        if *leave {
            return true;
        }
        match self.rung.wait_timeout(leave, INTERVAL) {
            Ok((leave, _)) => *leave,
            Err(poisoned) => *poisoned.into_inner().0,
        }
    }
}

/// Starts to watch.
///
/// # Errors
///
/// The process has no thread left.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    parting::spawn("nccl", move || watch(shared)).map(|thread| thread.handle)
}

fn watch(shared: Arc<Shared>) {
    let mut seen = Seen { awaited: None, done: 0, since: Instant::now() };
    while !shared.bell.sleep() {
        if parting::is_ending() {
            if !shared.ends.is_well() {
                shared.comm.abort();
            }
            // Nothing is given back: that may wait for the device.
            std::mem::forget(shared);
            return;
        }
        if shared.ends.is_well()
            && let Err(error) = shared.look().and_then(|()| seen.look(&shared))
        {
            shared.ends.end(error, "watch", shared.last.seq());
        }
        if !shared.ends.is_well() {
            shared.comm.abort();
        }
    }
    // Closed, or dropped without a word: then what runs has to end.
    shared.comm.abort();
}

impl Shared {
    /// Is every peer there, and does the library have nothing to say? Never waits.
    pub(crate) fn look(&self) -> Result<(), EnqueueError> {
        let (step, seq) = (self.last.made.step(), self.last.seq());
        if let (Some(liveness), Some(board)) = (&self.liveness, &self.ends.board) {
            let (rank, world) = (self.maker.rank, self.maker.world);
            let is_lost = |r: &u32| *r != rank && liveness.is_gone(*r) && !board.is_closed(*r);
            if let Some(rank) = (0..world).find(is_lost) {
                let how = "its process ended, or it dropped the group".to_owned();
                return Err(EnqueueError::Lost { step, seq, rank, how });
            }
        }
        match self.comm.error() {
            // A peer that gave up is heard of in this way too, and has said why.
            Some(_) if !self.ends.is_well() => Ok(()),
            Some(failed) => Err(failed.at(&step, seq)),
            None => Ok(()),
        }
    }

    /// Has it been so for too long that of these calls the last is not done? `step` is what that is.
    fn judge(
        &self,
        step: String,
        calls: RangeInclusive<u64>,
        waited: Duration,
    ) -> Result<(), EnqueueError> {
        if waited <= self.deadline {
            return Ok(());
        }
        let seq = *calls.end();
        let Some(board) = &self.ends.board else {
            return Err(EnqueueError::Late { step, seq, ranks: self.peers(), waited });
        };
        // The oldest call that a rank has not begun is the one that all wait for.
        let mut missing = calls.map(|seq| (seq, board.missing(seq)));
        if let Some((seq, ranks)) = missing.find(|(_, ranks)| !ranks.is_empty()) {
            return Err(EnqueueError::Late { step, seq, ranks, waited });
        }
        if waited <= self.deadline.saturating_mul(HUNG) {
            return Ok(());
        }
        let text = format!("every rank has made the call, and it is not done after {waited:.1?}");
        Err(EnqueueError::Vendor { step, seq, call: "the library", text })
    }

    /// All other ranks: any of them may be the one that has not come.
    pub(crate) fn peers(&self) -> Vec<u32> {
        (0..self.maker.world).filter(|r| *r != self.maker.rank).collect()
    }
}

/// What the watch knows of calls.
struct Seen {
    /// The call that the probe waits for, and when it was made.
    awaited: Option<(u64, Instant)>,
    /// The last call that is known to be done.
    done: u64,
    /// Since when that is known. A call behind long work of the engine's own has the whole deadline
    /// from when the call before it was done.
    since: Instant,
}

impl Seen {
    fn look(&mut self, shared: &Shared) -> Result<(), EnqueueError> {
        let last = &shared.last;
        let inside = last.inside.seq.load(Acquire);
        if inside != 0 {
            let waited = last.since(&last.inside).elapsed();
            shared.judge(last.inside.step(), self.done + 1..=inside, waited)?;
        }
        let failed = |e: DeviceError| of_device(e, "watch", last.seq());
        let made = last.seq();
        if self.awaited.is_none() && made > self.done {
            let at = last.since(&last.made);
            shared.probe.wait(&shared.behind).map_err(failed)?;
            self.awaited = Some((made, at));
        }
        let Some((seq, at)) = self.awaited else { return Ok(()) };
        if shared.probe.is_done().map_err(failed)? {
            (self.awaited, self.done, self.since) = (None, seq, Instant::now());
            return Ok(());
        }
        let waited = at.max(self.since).elapsed();
        shared.judge(last.made.step(), self.done + 1..=seq, waited)
    }
}
