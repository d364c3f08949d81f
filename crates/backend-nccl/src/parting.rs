//! How a process ends that still has threads inside the library or the driver: watches, aborts that
//! nobody waits for, and what was left behind. Both take their state down when the process ends, and
//! a thread that is in them then crashes it, whatever status it meant to end with.
//!
//! So the process waits for those threads. A watch of a group that is well has nothing to finish and
//! goes to rest; one of a group that has ended aborts its communicator first. That takes a few
//! milliseconds, or nothing where there is no group. What is not done within [`PATIENCE`], such as a
//! call that waits for a peer which never comes, never may be: then the process ends at once, with
//! its own status, and destructors and handlers that would come behind are left out. A close that was
//! left to the library is waited for as long as a close takes, [`CLOSE`]: what it waits for then is
//! graphs that the process has kept to its end.

use std::cell::OnceCell;
use std::ffi::c_int;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossover_bootstrap::exit;

/// How long the end of the process may take for threads to leave the library.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longer than the library takes to close a communicator that no graph holds up.
pub(crate) const CLOSE: Duration = Duration::from_millis(300);

/// Has the process begun to end?
static ENDING: AtomicBool = AtomicBool::new(false);
static INSIDE: Mutex<Inside> = Mutex::new(Inside { threads: 0, left: 0 });
static LEFT: Condvar = Condvar::new();

thread_local! {
    // The last thing of its thread to go: what the library keeps for threads was made later.
    static STAY: OnceCell<Stay> = const { OnceCell::new() };
}

/// How many threads may be inside the library.
struct Inside {
    /// All.
    threads: usize,
    /// Those of them that may stay for as long as the engine keeps graphs.
    left: usize,
}

/// That a thread may be inside the library, from when it is about to start to its very end.
struct Stay(Arc<AtomicU8>);

/// A thread is counted, ...
const STAYS: u8 = 0;
/// ... is among those that are left, ...
const STAYS_LEFT: u8 = 1;
/// ... or is counted no more.
const GONE: u8 = 2;

/// A thread that may be inside the library.
pub(crate) struct Thread {
    pub(crate) handle: thread::JoinHandle<()>,
    /// As what, with [`INSIDE`] locked.
    counted: Arc<AtomicU8>,
}

/// Has the end of the process wait for threads. For [`LOADED`] and for [`USED`]: what the library
/// loads and makes only when it is used is destroyed before what was there when it was loaded.
///
/// # Errors
///
/// The process can register nothing more.
pub(crate) fn prepare(once: &'static Once) -> io::Result<()> {
    let mut registered = Ok(());
    once.call_once(|| registered = exit::before_exit(part));
    registered
}

/// Once the library is loaded.
pub(crate) static LOADED: Once = Once::new();
/// Once it has been used.
pub(crate) static USED: Once = Once::new();

/// Has the process begun to end? Then nothing is to be begun with the library.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Acquire)
}

/// Starts a thread that may be inside the library for as long as it runs.
///
/// # Errors
///
/// The process has no thread left, or is ending.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let stay = Stay::begin().ok_or_else(|| io::Error::other("the process is ending"))?;
    let counted = Arc::clone(&stay.0);
    let handle = thread::Builder::new().name(format!("crossover {name}")).spawn(move || {
        STAY.with(|place| drop(place.set(stay)));
        work();
    })?;
    Ok(Thread { handle, counted })
}

impl Thread {
    /// It closes a communicator of which nothing is outstanding: what it waits for is up to the engine.
    pub(crate) fn leave(&self) {
        let mut inside = inside();
        if self.counted.load(Relaxed) == STAYS {
            self.counted.store(STAYS_LEFT, Relaxed);
            inside.left += 1;
        }
        LEFT.notify_all();
    }
}

impl Stay {
    fn begin() -> Option<Stay> {
        let mut inside = inside();
        // Under the lock: whoever ends the process looks at the number once it has said so.
        if is_ending() {
            return None;
        }
        inside.threads += 1;
        Some(Stay(Arc::default()))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut inside = inside();
        inside.threads -= 1;
        inside.left -= usize::from(self.0.swap(GONE, Relaxed) == STAYS_LEFT);
        drop(inside);
        LEFT.notify_all();
        if is_ending() {
            rest();
        }
    }
}

/// Until the process is gone: the end of a thread runs code of others too.
fn rest() -> ! {
    loop {
        thread::park();
    }
}

fn inside() -> MutexGuard<'static, Inside> {
    INSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn part(status: c_int) {
    let inside = inside();
    ENDING.store(true, Release);
    let began = Instant::now();
    let inside = until(inside, PATIENCE, |inside| inside.threads == inside.left);
    let inside = until(inside, CLOSE.saturating_sub(began.elapsed()), |inside| inside.threads == 0);
    if inside.threads > 0 {
        tracing::debug!(
            "{} threads are still inside the library after {:.1?}, {} of them for graphs: the process \
             ends without its destructors",
            inside.threads,
            began.elapsed(),
            inside.left
        );
        exit::at_once(status);
    }
}

fn until(
    inside: MutexGuard<'static, Inside>,
    patience: Duration,
    is_so: fn(&Inside) -> bool,
) -> MutexGuard<'static, Inside> {
    let waited = LEFT.wait_timeout_while(inside, patience, |inside| !is_so(inside));
    waited.unwrap_or_else(PoisonError::into_inner).0
}
