//! How a process ends that still has threads inside the library or the driver: watches, aborts that
//! nobody waits for, and what was left behind. Both take their state down when the process ends, and
//! a thread that is in them then crashes it, whatever status it meant to end with.
//!
//! So the process waits for those threads. A watch of a group that is well has nothing to finish and
//! goes to rest; one of a group that has ended aborts its communicator first. That takes a few
//! milliseconds, or nothing where there is no group. What is not done within [`PATIENCE`], such as a
//! call that waits for a peer which never comes, never may be: then the process ends at once, with
//! its own status, and destructors and handlers that would come behind are left out.

use std::cell::OnceCell;
use std::ffi::c_int;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use crossover_bootstrap::exit;

/// How long the end of the process may take for threads to leave the library.
const PATIENCE: Duration = Duration::from_secs(2);

/// Has the process begun to end?
static ENDING: AtomicBool = AtomicBool::new(false);
/// Threads that may be inside the library.
static INSIDE: Mutex<usize> = Mutex::new(0);
static LEFT: Condvar = Condvar::new();

thread_local! {
    // The last thing of its thread to go: what the library keeps for threads was made later.
    static STAY: OnceCell<Stay> = const { OnceCell::new() };
}

/// That a thread may be inside the library, from when it is about to start to its very end.
pub(crate) struct Stay(());

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
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<thread::JoinHandle<()>> {
    let stay = Stay::begin().ok_or_else(|| io::Error::other("the process is ending"))?;
    thread::Builder::new().name(format!("crossover {name}")).spawn(move || {
        STAY.with(|place| drop(place.set(stay)));
        work();
    })
}

impl Stay {
    fn begin() -> Option<Stay> {
        let mut inside = inside();
        // Under the lock: whoever ends the process looks at the number once it has said so.
        if is_ending() {
            return None;
        }
        *inside += 1;
        Some(Stay(()))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        *inside() -= 1;
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

fn inside() -> MutexGuard<'static, usize> {
    INSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn part(status: c_int) {
    let inside = inside();
    ENDING.store(true, Release);
    let left = LEFT.wait_timeout_while(inside, PATIENCE, |inside| *inside > 0);
    let (inside, _) = left.unwrap_or_else(PoisonError::into_inner);
    if *inside > 0 {
        tracing::debug!(
            "{} threads are still inside the library after {PATIENCE:.0?}: the process ends \
             without its destructors",
            *inside
        );
        exit::at_once(status);
    }
}
