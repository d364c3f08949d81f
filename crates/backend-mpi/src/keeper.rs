//! The threads that make MPI's calls that block, so that whoever waits for one of them has a
//! deadline. One of them begins with MPI and, when the process ends, ends with it: the standard wants both
//! done by the same thread.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use crossover_bootstrap::exit;

use crate::errors;
use crate::library::Library;
use crate::library::layout::{Comm, SUCCESS, THREAD_MULTIPLE};

/// How long a process that ends waits for the others to end as well.
const GOODBYE: Duration = Duration::from_secs(10);

/// Has an operation of MPI been given up? MPI would wait for it at its end.
static ABANDONED: AtomicBool = AtomicBool::new(false);

type Job = Box<dyn FnOnce() + Send>;

/// Where this process is among those that were started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

/// Runs `work` on the thread and waits for it. `what` is MPI's function.
///
/// # Errors
///
/// What `work` says, or that it did not return in time: then it goes on alone.
pub(crate) fn run<T: Send + 'static>(
    what: &str,
    deadline: Duration,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (job, told) = job(work);
    jobs()?.lock().unwrap_or_else(PoisonError::into_inner).send(job).map_err(|_| gone(what))?;
    wait(what, deadline, &told)
}

/// The same on a thread of its own, for what waits for the ranks of one group: threads that make two groups
/// may come to it in one order here and in the other at a peer.
///
/// # Errors
///
/// As of [`run`].
pub(crate) fn run_apart<T: Send + 'static>(
    what: &str,
    deadline: Duration,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (job, told) = job(work);
    let started = thread("crossover-mpi-group").spawn(job);
    started.map_err(|e| format!("no thread to call {what}: {e}"))?;
    wait(what, deadline, &told)
}

/// What a thread runs, and where its result comes.
fn job<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> (Job, Receiver<Result<T, String>>) {
    let (tell, told) = sync_channel(1);
    let job = Box::new(move || {
        let _ = tell.send(work());
    });
    (job, told)
}

fn wait<T>(
    what: &str,
    deadline: Duration,
    told: &Receiver<Result<T, String>>,
) -> Result<T, String> {
    match told.recv_timeout(deadline) {
        Ok(result) => result,
        Err(RecvTimeoutError::Disconnected) => Err(gone(what)),
        Err(RecvTimeoutError::Timeout) => {
            abandon();
            Err(format!("{what} has not returned after {deadline:.1?}"))
        }
    }
}

fn gone(what: &str) -> String {
    format!("{what} cannot be called: the thread that calls MPI is gone")
}

fn thread(name: &str) -> Builder {
    Builder::new().name(name.to_owned())
}

/// The way to the thread.
struct Jobs {
    send: Mutex<Sender<Job>>,
    /// A child that was forked since has no such thread, and maybe a lock that nobody opens.
    process: u32,
}

fn jobs() -> Result<&'static Mutex<Sender<Job>>, String> {
    static JOBS: OnceLock<Result<Jobs, String>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (send, receive) = channel::<Job>();
        let started =
            thread("crossover-mpi").spawn(move || receive.into_iter().for_each(|job| job()));
        let jobs = |_| Jobs { send: Mutex::new(send), process: std::process::id() };
        started.map(jobs).map_err(|e| format!("no thread to call MPI: {e}"))
    });
    let jobs = jobs.as_ref().map_err(Clone::clone)?;
    if jobs.process != std::process::id() {
        return Err(
            "MPI is its parent's in a process that was forked: let the launcher start it".into()
        );
    }
    Ok(&jobs.send)
}

/// Something of MPI's will never complete here or at a peer: the process ends without MPI's end.
pub(crate) fn abandon() {
    ABANDONED.store(true, Release);
}

/// Begins with MPI, unless somebody has, and says where this process is.
///
/// # Errors
///
/// MPI cannot be had, or not by several threads.
pub(crate) fn begin(library: &'static Library, deadline: Duration) -> Result<Place, String> {
    run("MPI_Init_thread", deadline, move || begin_here(library)).map_err(|why| {
        let wanted =
            "all that the launcher has started begin together: let them form a group of all first";
        if why.contains("has not returned") { format!("{why}; {wanted}") } else { why }
    })
}

fn begin_here(library: &'static Library) -> Result<Place, String> {
    let calls = &library.calls;
    let (mut begun, mut ended, mut level) = (0, 0, 0);
    // SAFETY: valid pointers; both may be called at any time.
    unsafe {
        (calls.initialized)(&raw mut begun);
        (calls.finalized)(&raw mut ended);
    }
    if ended != 0 {
        return Err(
            "this process has called MPI_Finalize, after which MPI cannot be used".to_owned()
        );
    }
    let ours = begun == 0;
    if ours {
        // SAFETY: once in a process, as the flag says: this thread alone calls it. No arguments are
        // passed on.
        let status =
            unsafe { (calls.init_thread)(null_mut(), null_mut(), THREAD_MULTIPLE, &raw mut level) };
        judge(library, "MPI_Init_thread", status)?;
        end_with_the_process(library);
        errors::are_returned(library)?;
    } else {
        // SAFETY: MPI has begun.
        judge(library, "MPI_Query_thread", unsafe { (calls.query_thread)(&raw mut level) })?;
    }
    if level < THREAD_MULTIPLE {
        let cure = match ours {
            true => "take a library that was built for threads",
            false => "let the program begin by MPI_Init_thread with MPI_THREAD_MULTIPLE",
        };
        return Err(format!("threads may not call MPI here as they want: {cure}"));
    }
    let (mut rank, mut size) = (0, 0);
    errors::returned(library, || {
        // SAFETY: MPI has begun; valid pointers.
        let told = unsafe {
            judge(library, "MPI_Comm_rank", (calls.comm_rank)(Comm::WORLD, &raw mut rank))?;
            (calls.comm_size)(Comm::WORLD, &raw mut size)
        };
        judge(library, "MPI_Comm_size", told)
    })?;
    Ok(Place { rank: rank as u32, size: size as u32 })
}

/// MPI's status as a result.
pub(crate) fn judge(library: &Library, what: &str, status: c_int) -> Result<(), String> {
    match status {
        SUCCESS => Ok(()),
        _ => Err(format!("{what} failed: {}", library.in_words(status))),
    }
}

/// The library that this process has begun with, and will end with.
static OURS: OnceLock<&'static Library> = OnceLock::new();

fn end_with_the_process(library: &'static Library) {
    // It is registered after the library's own handlers, and so runs before them.
    if OURS.set(library).is_ok()
        && let Err(e) = exit::before_exit(finalize)
    {
        tracing::warn!("this process will end without MPI_Finalize: {e}");
    }
}

/// A launcher takes a rank that ends without this for one that has crashed. MPI waits here for all other ranks,
/// which may be in trouble: then the process ends without.
fn finalize(_: c_int) {
    let Some(library) = OURS.get().filter(|_| !ABANDONED.load(Acquire)) else { return };
    let _ = run("MPI_Finalize", GOODBYE, || {
        let mut ended = 0;
        // SAFETY: may be called at any time.
        unsafe { (library.calls.finalized)(&raw mut ended) };
        match ended {
            // SAFETY: by the thread that began, and once.
            0 => judge(library, "MPI_Finalize", unsafe { (library.calls.finalize)() }),
            _ => Ok(()),
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    /// As `MPI_Comm_create_group` of two groups that another rank makes in the other order.
    #[test]
    fn what_waits_for_one_group_does_not_hold_up_another() {
        let both = Arc::new(Barrier::new(2));
        let meet = || {
            let both = Arc::clone(&both);
            run_apart("a collective", Duration::from_secs(20), move || {
                both.wait();
                Ok(())
            })
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(meet);
            assert_eq!(meet(), Ok(()));
            assert_eq!(other.join().expect("no panic"), Ok(()));
        });
    }

    #[test]
    fn a_forked_child_is_refused_at_once() {
        unsafe extern "C" {
            /// Of the C library.
            fn fork() -> c_int;
            /// Of the C library.
            fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
            /// Of the C library.
            fn _exit(status: c_int) -> !;
        }
        assert_eq!(run("a call", Duration::from_secs(20), || Ok(7)), Ok(7));
        // SAFETY: the child allocates, which the C library allows, and never returns.
        let child = unsafe { fork() };
        if child == 0 {
            let told = run("a call", Duration::from_secs(20), || Ok(7));
            let is_refused = told.is_err_and(|why| why.contains("forked"));
            // SAFETY: it may be called at any time.
            unsafe { _exit(if is_refused { 0 } else { 1 }) };
        }
        let mut status = -1;
        // SAFETY: a place for the answer.
        let ended = unsafe { waitpid(child, &raw mut status, 0) };
        assert_eq!((ended, status), (child, 0));
    }
}
