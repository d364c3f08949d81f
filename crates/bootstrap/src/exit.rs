//! The end of the process: a last word to threads that are inside a vendor's library, before that
//! library takes its state down under them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

/// What is called, with the status that the process ends with.
type LastWord = fn(c_int);

struct Registered {
    last_word: LastWord,
    /// A child that was forked since has no part in it.
    process: u32,
}

/// Calls a function when this process ends of its own: when `main` returns or somebody calls `exit`.
/// Handlers run from the last registered to the first, and destructors of a library are registered
/// when it is loaded, or when it first makes what they destroy: so this is for after that. It is
/// not called in children that were forked meanwhile.
///
/// The code of the function stays loaded for good. It must not panic.
///
/// # Errors
///
/// The process can register no more.
pub fn before_exit(last_word: LastWord) -> std::io::Result<()> {
    unsafe extern "C" {
        /// Of the C library.
        fn on_exit(f: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }
    stay_loaded();
    let registered = Registered { last_word, process: std::process::id() };
    let argument: *mut Registered = Box::into_raw(Box::new(registered));
    // SAFETY: what is called does not unwind, and its argument lives from now on.
    match unsafe { on_exit(call, argument.cast()) } {
        0 => Ok(()),
        _ => Err(std::io::ErrorKind::OutOfMemory.into()),
    }
}

extern "C" fn call(status: c_int, argument: *mut c_void) {
    // SAFETY: what was registered, which is never freed.
    let registered = unsafe { &*argument.cast::<Registered>() };
    if registered.process == std::process::id() {
        (registered.last_word)(status);
    }
}

/// Ends the process with a status, now: what other code wants done at its end is not done, except
/// that C's streams are flushed. For when a thread cannot be got out of a library whose destructors
/// come next: it would crash.
pub fn at_once(status: c_int) -> ! {
    unsafe extern "C" {
        /// Of the C library.
        fn fflush(stream: *mut c_void) -> c_int;
        /// Of the C library.
        fn _exit(status: c_int) -> !;
    }
    // SAFETY: null stands for all streams.
    unsafe { fflush(null_mut()) };
    // SAFETY: it may be called at any time.
    unsafe { _exit(status) }
}

/// What a handler is in must be there when it is called, and so must what threads run that nobody
/// joins: a program that unloads the shared library of which this is a part unloads its name alone.
fn stay_loaded() {
    /// `Dl_info` of the C library.
    #[repr(C)]
    struct Place {
        file: *const c_char,
        base: *mut c_void,
        symbol: *const c_char,
        address: *mut c_void,
    }
    unsafe extern "C" {
        /// Of the C library.
        fn dladdr(address: *const c_void, place: *mut Place) -> c_int;
        /// Of the C library.
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    }
    /// `RTLD_NOW`, `RTLD_NOLOAD` and `RTLD_NODELETE` of Linux's C libraries.
    const KEEP: c_int = 0x2 | 0x4 | 0x1000;
    let mut place =
        Place { file: null_mut(), base: null_mut(), symbol: null_mut(), address: null_mut() };
    // SAFETY: a place for the answer.
    let is_known = unsafe { dladdr(call as *const c_void, &raw mut place) } != 0;
    if is_known && !place.file.is_null() {
        // SAFETY: the loader's name of it, which lives as long as it is loaded.
        let file = unsafe { CStr::from_ptr(place.file) };
        // A program is no library: then there is nothing to keep, and this says so.
        // SAFETY: nothing is loaded that was not.
        unsafe { dlopen(file.as_ptr(), KEEP) };
    }
}
