//! This rank's communicator, owned: calls of it and its end do not meet in the library.

use std::ffi::CStr;
use std::fmt;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crossover_core::agreement::StepError;
use crossover_core::backend::EnqueueError;
use crossover_device::device::Device;
use crossover_nccl_sys::Library;
use crossover_nccl_sys::layout::{self, Config, Status, UniqueId};

use crate::parting;

/// The communicator. It blocks (`aside` says why), unless the user's `NCCL_COMM_BLOCKING` has it
/// otherwise.
pub(crate) struct Comm {
    pub(crate) library: Arc<Library>,
    raw: Raw,
    state: AtomicU8,
    /// Held while the library is in a call of it.
    inside: Mutex<()>,
    deadline: Duration,
}

/// What the library gave, which may be used from any thread, by one at a time.
#[derive(Clone, Copy)]
struct Raw(layout::Comm);

// SAFETY: NCCL's communicators belong to no thread.
unsafe impl Send for Raw {}
// SAFETY: it is only a number here; the mutex keeps the library's calls apart.
unsafe impl Sync for Raw {}

/// Until it ends, in one of two ways.
const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;
const ABORTED: u8 = 3;
/// Closing, and left to the library, which waits for graphs of the engine's to be gone.
const LEFT: u8 = 4;
/// How long an abort waits for a call to leave the library before it goes ahead. It then ends that
/// call, which the library documents: most likely the call waits for a peer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between looks at what has been begun, where calls do not block.
const LOOK: Duration = Duration::from_micros(50);
/// The same, once nobody waits.
const LEISURE: Duration = Duration::from_millis(10);

/// What became of a call that was not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried<R> {
    /// Another thread is in a call of the communicator.
    Busy,
    /// The communicator has ended.
    Ended,
    /// It was made.
    Done(R),
}

/// What a group joins by.
pub(crate) struct Ticket {
    pub(crate) id: UniqueId,
    pub(crate) rank: u32,
    pub(crate) world: u32,
    pub(crate) config: Config,
    pub(crate) deadline: Duration,
}

// SAFETY: the configuration's pointers are null: nothing here sets a name.
unsafe impl Send for Ticket {}

/// A call of the library that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    /// The function.
    pub(crate) call: &'static str,
    /// Its status, in the library's words.
    pub(crate) text: String,
}

impl Failed {
    pub(crate) fn at(self, step: &str, seq: u64) -> EnqueueError {
        let Failed { call, text } = self;
        EnqueueError::Vendor { step: step.to_owned(), seq, call, text }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.call, self.text)
    }
}

impl Comm {
    /// Joins. It waits for all ranks, without a deadline of the library's: to be called aside.
    pub(crate) fn join(
        library: Arc<Library>,
        device: &Device,
        ticket: Ticket,
    ) -> Result<Comm, StepError> {
        device.make_current().map_err(StepError::new)?;
        let Ticket { id, rank, world, mut config, deadline } = ticket;
        let mut raw = std::ptr::null_mut();
        // SAFETY: both places are valid for the call; the id is one that rank 0's library made.
        let status = unsafe {
            (library.calls.comm_init_rank_config)(
                &raw mut raw,
                world as i32,
                id,
                rank as i32,
                &raw mut config,
            )
        };
        let (state, inside) = (AtomicU8::new(OPEN), Mutex::new(()));
        let refused = |text| StepError::new(Failed { call: "ncclCommInitRankConfig", text });
        if raw.is_null() {
            return Err(refused(words(&library, status)));
        }
        let comm = Comm { library, raw: Raw(raw), state, inside, deadline };
        match comm.awaited(status) {
            Status::SUCCESS => Ok(comm),
            failed => Err(refused(comm.words(failed))),
        }
    }

    /// Calls the library with the communicator; `None` if it has ended.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&Library, layout::Comm) -> R) -> Option<R> {
        let _inside = self.enter();
        (self.state.load(Acquire) == OPEN).then(|| call(&self.library, self.raw.0))
    }

    /// Enqueues calls that belong together, and awaits that they are enqueued.
    pub(crate) fn enqueue(
        &self,
        call: &'static str,
        put: impl FnOnce(&Library, layout::Comm) -> Result<Status, Failed>,
    ) -> Result<(), Failed> {
        let put = self.with(|library, raw| match put(library, raw)? {
            Status::SUCCESS => Ok(()),
            status => self.done(call, self.awaited(status)),
        });
        put.unwrap_or_else(|| Err(Failed { call, text: "the communicator has ended".to_owned() }))
    }

    /// Of a call among others: those that are only begun are awaited with the last.
    pub(crate) fn begun(&self, call: &'static str, status: Status) -> Result<(), Failed> {
        match status {
            Status::IN_PROGRESS => Ok(()),
            status => self.done(call, status),
        }
    }

    fn done(&self, call: &'static str, status: Status) -> Result<(), Failed> {
        match status.is_success() {
            true => Ok(()),
            false => Err(Failed { call, text: self.words(status) }),
        }
    }

    /// Likewise, without waiting for another thread's call.
    pub(crate) fn try_with<R>(&self, call: impl FnOnce(&Library, layout::Comm) -> R) -> Tried<R> {
        let _inside = match self.inside.try_lock() {
            Ok(inside) => inside,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Tried::Busy,
        };
        match self.state.load(Acquire) {
            OPEN => Tried::Done(call(&self.library, self.raw.0)),
            _ => Tried::Ended,
        }
    }

    /// What has gone wrong since, on this rank or as far as it knows. Never waits: a call that is
    /// in the library has the say.
    pub(crate) fn error(&self) -> Option<Failed> {
        let call = "ncclCommGetAsyncError";
        match self.try_with(|_, _| self.async_error()) {
            Tried::Busy | Tried::Ended => None,
            Tried::Done(Ok(Status::SUCCESS | Status::IN_PROGRESS)) => None,
            Tried::Done(Ok(status) | Err(status)) => {
                Some(Failed { call, text: self.words(status) })
            }
        }
    }

    /// Ends what runs, here: kernels that wait come to an end. Once; it may take a while.
    pub(crate) fn abort(&self) {
        let aborts = |state| matches!(state, OPEN | CLOSING).then_some(ABORTED);
        if self.state.fetch_update(AcqRel, Acquire, aborts).is_err() {
            return;
        }
        let began = Instant::now();
        let _inside = loop {
            match self.inside.try_lock() {
                Ok(inside) => break Some(inside),
                Err(TryLockError::Poisoned(poisoned)) => break Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => thread::sleep(LOOK),
                Err(TryLockError::WouldBlock) => break None,
            }
        };
        abort(&self.library, self.raw);
    }

    /// Awaits that all ranks are done, and frees it. Without a deadline: to be called aside.
    pub(crate) fn close(&self) -> Result<(), Failed> {
        if self.state.compare_exchange(OPEN, CLOSING, AcqRel, Acquire).is_err() {
            return Ok(());
        }
        let call = "ncclCommFinalize";
        let aborted = || Failed { call, text: "it was aborted meanwhile".to_owned() };
        let _inside = self.enter();
        // An abort may have come in first, and freed the communicator.
        if !matches!(self.state.load(Acquire), CLOSING | LEFT) {
            return Err(aborted());
        }
        // SAFETY: the communicator is there: only this and an abort end it, and an abort that comes
        // now waits, or ends this call.
        let finalized = self.awaited(unsafe { (self.library.calls.comm_finalize)(self.raw.0) });
        let closes = |state| matches!(state, CLOSING | LEFT).then_some(CLOSED);
        if self.state.fetch_update(AcqRel, Acquire, closes).is_err() {
            return Err(aborted());
        }
        if !finalized.is_success() {
            let failed = Failed { call, text: self.words(finalized) };
            abort(&self.library, self.raw);
            return Err(failed);
        }
        // SAFETY: finalized, and nobody else ends it: it is marked as closed.
        let status = unsafe { (self.library.calls.comm_destroy)(self.raw.0) };
        match status.is_success() {
            true => Ok(()),
            false => Err(Failed { call: "ncclCommDestroy", text: words(&self.library, status) }),
        }
    }

    /// Leaves a close that the library is in to its thread: no abort ends it any more, and no deadline.
    /// `false` if the library is not in it.
    pub(crate) fn leave(&self) -> bool {
        self.state.compare_exchange(CLOSING, LEFT, AcqRel, Acquire).is_ok()
    }

    /// A status in the library's words, with what it says of it beside.
    pub(crate) fn words(&self, status: Status) -> String {
        words(&self.library, status)
    }

    /// The status of what was begun, once it is done; for calls that block, at once.
    fn awaited(&self, begun: Status) -> Status {
        let began = Instant::now();
        let mut status = begun;
        while status == Status::IN_PROGRESS {
            let state = self.state.load(Acquire);
            if state == ABORTED || (state != LEFT && began.elapsed() > self.deadline) {
                return status;
            }
            thread::sleep(if state == LEFT { LEISURE } else { LOOK });
            status = self.async_error().unwrap_or_else(|failed| failed);
        }
        status
    }

    /// # Errors
    ///
    /// It could not be asked.
    fn async_error(&self) -> Result<Status, Status> {
        let mut error = Status::SUCCESS;
        // SAFETY: the place is valid for the call, and the communicator is there: callers look.
        let asked =
            unsafe { (self.library.calls.comm_get_async_error)(self.raw.0, &raw mut error) };
        if asked.is_success() { Ok(error) } else { Err(asked) }
    }

    fn enter(&self) -> MutexGuard<'_, ()> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Comm {
    /// The library may take its time to end what runs; whoever drops does not wait for it.
    fn drop(&mut self) {
        if *self.state.get_mut() == OPEN {
            let (library, raw) = (Arc::clone(&self.library), self.raw);
            let started = parting::spawn("abort", move || abort(&library, raw));
            if let Err(e) = started {
                tracing::warn!("a communicator stays: there is no thread to abort it: {e}");
            }
        }
    }
}

fn abort(library: &Library, raw: Raw) {
    // SAFETY: it is there, and ended by this alone: callers have marked it.
    let status = unsafe { (library.calls.comm_abort)(raw.0) };
    if !status.is_success() {
        let text = words(library, status);
        tracing::warn!("a communicator could not be aborted: {text}");
    }
}

/// Asked of no communicator: it may have ended meanwhile.
pub(crate) fn words(library: &Library, status: Status) -> String {
    // SAFETY: a status that the library gave; its text lives as long as the library.
    let text = unsafe { text((library.calls.get_error_string)(status)) };
    let nobody = std::ptr::null_mut();
    // SAFETY: null asks for the last warning of all.
    let last = library.optional.get_last_error.map(|f| unsafe { text_of(f(nobody)) });
    match last.filter(|last| !last.is_empty() && *last != text) {
        Some(last) => format!("{text} ({last})"),
        None => text,
    }
}

/// # Safety
///
/// Null, or a text that ends with a zero.
unsafe fn text(from: *const std::ffi::c_char) -> String {
    if from.is_null() {
        return "no text".to_owned();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().trim().to_owned()
}

/// # Safety
///
/// As for [`text`].
unsafe fn text_of(from: *const std::ffi::c_char) -> String {
    // SAFETY: the caller's promise.
    if from.is_null() { String::new() } else { unsafe { text(from) } }
}
