//! A library with NCCL's symbols over shared memory (`tests/nccl-stand-in`), for machines without a
//! GPU: it drives every path of backend `nccl`, and is no evidence about NCCL.
//!
//! [`stand_in`] builds it, [`install`] hands it the streams of the emulated driver. Both come before a
//! group forms; the group is then told the library's path as its user would tell it.

mod build;

use std::ffi::{CString, c_char, c_longlong};
use std::path::Path;
use std::sync::Arc;

use crossover_kernel_emulation::driver::{Emulated, Entry};
use libloading::Library;

pub use self::build::stand_in;

/// What tests can ask of the library, beside what NCCL can be asked. Whatever loads the same path in
/// this process has the same library: it is never unloaded.
pub struct StandIn {
    library: Library,
    calls: Calls,
}

#[derive(Clone, Copy)]
struct Calls {
    streams: unsafe extern "C" fn(Entry),
    failures: unsafe extern "C" fn(*const c_char),
    told: unsafe extern "C" fn(*mut c_char, usize) -> usize,
    alive: unsafe extern "C" fn(*mut [c_longlong; 3]),
}

/// What has not been given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Communicators.
    pub communicators: i64,
    /// Registrations, windows among them.
    pub windows: i64,
    /// Blocks of memory.
    pub blocks: i64,
}

/// Loads the library and gives it the driver's streams, in which its collectives then run.
///
/// # Errors
///
/// It cannot be loaded.
pub fn install(path: &Path, driver: &Arc<Emulated>) -> Result<StandIn, libloading::Error> {
    // SAFETY: the stand-in does nothing when it is loaded.
    let library = unsafe { Library::new(path)? };
    // SAFETY: these are their types in `tests/nccl-stand-in/control.h`.
    let calls = unsafe {
        Calls {
            streams: *library.get(c"crossover_stand_in_streams")?,
            failures: *library.get(c"crossover_stand_in_failures")?,
            told: *library.get(c"crossover_stand_in_told")?,
            alive: *library.get(c"crossover_stand_in_alive")?,
        }
    };
    // SAFETY: an entry can be called at any time.
    unsafe { (calls.streams)(driver.host_function_entry()) };
    Ok(StandIn { library, calls })
}

impl StandIn {
    /// The library, for calls by NCCL's names.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Communicators made from now on fail so; the words are in `tests/nccl-stand-in/failures.h`. None:
    /// as `CROSSOVER_STAND_IN` says.
    ///
    /// # Panics
    ///
    /// If the words hold a zero.
    pub fn fail(&self, words: Option<&str>) {
        let words = words.map(|words| CString::new(words).expect("words have no zero"));
        let pointer = words.as_ref().map_or(std::ptr::null(), |words| words.as_ptr());
        // SAFETY: it is copied before the call returns.
        unsafe { (self.calls.failures)(pointer) };
    }

    /// What it was asked since it last told, a line each, in the order in which it was asked.
    pub fn told(&self) -> String {
        // SAFETY: nothing is written without room.
        let mut room = unsafe { (self.calls.told)(std::ptr::null_mut(), 0) };
        loop {
            let mut text = vec![0u8; room + 1024];
            // SAFETY: the room is there.
            let whole = unsafe { (self.calls.told)(text.as_mut_ptr().cast(), text.len()) };
            if whole < text.len() {
                text.truncate(whole);
                return String::from_utf8_lossy(&text).into_owned();
            }
            room = whole;
        }
    }

    /// What has not been given back.
    pub fn alive(&self) -> Alive {
        let mut counts = [0; 3];
        // SAFETY: it has room for three.
        unsafe { (self.calls.alive)(&raw mut counts) };
        let [communicators, windows, blocks] = counts;
        Alive { communicators, windows, blocks }
    }
}
