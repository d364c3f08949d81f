//! What a function returns, and the sentence to it.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crossover::{CallError, CommitError, call_exit_code};

/// What every function returns: the code that the program `crossover` would end with.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done, or enqueued.
    Ok = 0,
    /// It started and failed: the group is no longer usable. Of `crossover_prepare`, it could not be
    /// made ready, and the group is as usable as before.
    Failed = 1,
    /// Bad arguments, settings or files. Nothing was started.
    Usage = 2,
    /// No backend takes the call, on any rank; or a forced one cannot be had. Nothing was started.
    NothingEligible = 3,
    /// A peer was lost, a deadline passed, or some rank aborted. The group is no longer usable.
    PeerLost = 4,
}

/// Why a function did not do what it was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    status: Status,
    sentence: String,
}

impl Failure {
    /// The caller's mistake.
    pub(crate) fn usage(sentence: impl Into<String>) -> Failure {
        Failure { status: Status::Usage, sentence: sentence.into() }
    }

    pub(crate) fn sentence(&self) -> &str {
        &self.sentence
    }

    pub(crate) fn of(code: u8, sentence: String) -> Failure {
        let status = match code {
            2 => Status::Usage,
            3 => Status::NothingEligible,
            4 => Status::PeerLost,
            _ => Status::Failed,
        };
        Failure { status, sentence }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        Failure::of(call_exit_code(&error), error.to_string())
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Failure {
        Failure::of(if error.is_loss() { 4 } else { 1 }, error.to_string())
    }
}

impl From<crossover::Error> for Failure {
    fn from(error: crossover::Error) -> Failure {
        Failure::of(error.exit_code(), error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs a function's body: a failure becomes its status, and its sentence this thread's last one. A
/// panic is a defect of this library, and ends here.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let sentence = format!(
                "a defect of Crossover, which is worth a report: it panicked: {}",
                message(&*panic)
            );
            Failure::of(1, sentence)
        }
    };
    let bytes: Vec<u8> = failure.sentence.into_bytes().into_iter().filter(|b| *b != 0).collect();
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(bytes).unwrap_or_default());
    failure.status
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// Why the last function that failed on this thread did: one sentence, UTF-8; empty if none has. It is
/// valid until the next one fails on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn crossover_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last() -> String {
        // SAFETY: the sentence is valid until the next failure on this thread.
        unsafe { CStr::from_ptr(crossover_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_ends_at_the_boundary_and_is_told() {
        assert_eq!(guard(|| panic!("seven is {}", 7)), Status::Failed);
        assert!(last().ends_with("it panicked: seven is 7"), "{}", last());
    }

    #[test]
    fn every_thread_has_its_own_last_sentence_which_success_leaves() {
        assert_eq!(guard(|| Err(Failure::usage("here\0"))), Status::Usage);
        std::thread::spawn(|| {
            assert_eq!(last(), "");
            assert_eq!(guard(|| Err(Failure::of(4, "there".to_owned()))), Status::PeerLost);
        })
        .join()
        .expect("the other thread");
        assert_eq!(guard(|| Ok(())), Status::Ok);
        assert_eq!(last(), "here");
    }
}
