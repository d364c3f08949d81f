//! The runtime's C interface (`emulator.h`), in an image that was loaded.

use std::ffi::{CStr, CString, c_char, c_void};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use libloading::Library;
use rustix::fs::MemfdFlags;

use crate::scenario::{Outcome, Verdict};

/// An entry point, as the runtime knows it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Kernel {
    name: *const c_char,
    body: *const c_void,
    /// Most threads of a block.
    pub(crate) max_threads: u32,
    /// Bytes of its parameter.
    pub(crate) parameter_bytes: u32,
    next: *const Kernel,
}

// SAFETY: it is written before anybody sees it and never changes.
unsafe impl Sync for Kernel {}

#[repr(C)]
struct RawLaunch {
    kernel: *const Kernel,
    parameter: *const u8,
    who: *const c_char,
    seed: u64,
    blocks: u32,
    threads: u32,
    programmatic: u32,
    delay_us: u32,
    hang_ms: u32,
}

/// A launch as a queue takes it.
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'static Kernel,
    pub(crate) parameter: &'a [u8],
    pub(crate) who: &'a CStr,
    pub(crate) seed: u64,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) programmatic: bool,
    pub(crate) delay_us: u32,
    pub(crate) hang_ms: u32,
}

struct Calls {
    find: unsafe extern "C" fn(*const c_char) -> *const Kernel,
    queue_new: unsafe extern "C" fn() -> *mut c_void,
    queue_launch: unsafe extern "C" fn(*mut c_void, *const RawLaunch) -> bool,
    queue_drain: unsafe extern "C" fn(*mut c_void) -> bool,
    queue_report: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    queue_delete: unsafe extern "C" fn(*mut c_void),
    play: unsafe extern "C" fn(*const u8, usize, *mut c_char, usize) -> i32,
}

/// A loaded image. It stays loaded: threads that hang in it could not be unloaded.
pub struct Runtime {
    calls: Calls,
}

impl Runtime {
    /// Loads an image from its file.
    pub fn open(path: &Path) -> Result<Arc<Runtime>, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Runtime::load(&bytes)
    }

    /// Loads an image from its bytes. Each time it is another one, with its own kernels.
    pub fn load(image: &[u8]) -> Result<Arc<Runtime>, String> {
        let told = |e: &dyn std::fmt::Display| format!("the image cannot be loaded: {e}");
        let memory = rustix::fs::memfd_create("emulated-kernels", MemfdFlags::CLOEXEC);
        let mut file = std::fs::File::from(memory.map_err(|e| told(&e))?);
        file.write_all(image).map_err(|e| told(&e))?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: what the image runs when it is loaded only makes kernels known.
        let library = unsafe { Library::new(path) }.map_err(|e| told(&e))?;
        let calls = Calls::of(&library).map_err(|e| told(&e))?;
        std::mem::forget(library);
        // The loader knows an image by its path: the next one must not get the same.
        std::mem::forget(file);
        Ok(Arc::new(Runtime { calls }))
    }

    /// Plays an encoded scenario.
    pub(crate) fn play(&self, scenario: &[u8]) -> Outcome {
        let mut report = vec![0u8; 1 << 14];
        // SAFETY: both ranges are valid, and the report is ended by a 0 within its room.
        let code = unsafe {
            let room = report.as_mut_ptr().cast();
            (self.calls.play)(scenario.as_ptr(), scenario.len(), room, report.len())
        };
        let report = CStr::from_bytes_until_nul(&report).unwrap_or_default();
        Outcome { verdict: Verdict::of(code), report: report.to_string_lossy().into_owned() }
    }

    /// A kernel by its name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Kernel> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends in 0; what is returned lives as long as the image: for ever.
        unsafe { (self.calls.find)(name.as_ptr()).as_ref() }
    }
}

impl Calls {
    fn of(library: &Library) -> Result<Calls, libloading::Error> {
        // SAFETY: `emulator.h` declares these functions so.
        unsafe {
            Ok(Calls {
                find: *library.get(c"emulator_find")?,
                queue_new: *library.get(c"emulator_queue_new")?,
                queue_launch: *library.get(c"emulator_queue_launch")?,
                queue_drain: *library.get(c"emulator_queue_drain")?,
                queue_report: *library.get(c"emulator_queue_report")?,
                queue_delete: *library.get(c"emulator_queue_delete")?,
                play: *library.get(c"emulator_play")?,
            })
        }
    }
}

/// A stream's kernels of one image.
pub(crate) struct Queue {
    runtime: Arc<Runtime>,
    raw: NonNull<c_void>,
}

// SAFETY: it may be used from any thread, one at a time.
unsafe impl Send for Queue {}

impl Queue {
    pub(crate) fn new(runtime: Arc<Runtime>) -> Queue {
        // SAFETY: no preconditions.
        let raw = unsafe { (runtime.calls.queue_new)() };
        Queue { raw: NonNull::new(raw).expect("C++'s new does not return null"), runtime }
    }

    /// Starts a kernel. The error says who hung where.
    ///
    /// # Safety
    /// What the parameter points at is valid until the queue is drained.
    pub(crate) unsafe fn launch(&mut self, launch: &Launch<'_>) -> Result<(), String> {
        debug_assert_eq!(launch.parameter.len(), launch.kernel.parameter_bytes as usize);
        let raw = RawLaunch {
            kernel: launch.kernel,
            parameter: launch.parameter.as_ptr(),
            who: launch.who.as_ptr(),
            seed: launch.seed,
            blocks: launch.blocks,
            threads: launch.threads,
            programmatic: launch.programmatic.into(),
            delay_us: launch.delay_us,
            hang_ms: launch.hang_ms,
        };
        // SAFETY: as the caller promises; the runtime copies the parameter.
        let fine = unsafe { (self.runtime.calls.queue_launch)(self.raw.as_ptr(), &raw) };
        self.outcome(fine)
    }

    /// Waits for every kernel.
    pub(crate) fn drain(&mut self) -> Result<(), String> {
        // SAFETY: it is not deleted.
        let fine = unsafe { (self.runtime.calls.queue_drain)(self.raw.as_ptr()) };
        self.outcome(fine)
    }

    fn outcome(&self, fine: bool) -> Result<(), String> {
        if fine {
            return Ok(());
        }
        // SAFETY: the report is valid until the queue is used again.
        let report =
            unsafe { CStr::from_ptr((self.runtime.calls.queue_report)(self.raw.as_ptr())) };
        Err(report.to_string_lossy().trim_end().to_owned())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: once, and nobody uses it after.
        unsafe { (self.runtime.calls.queue_delete)(self.raw.as_ptr()) }
    }
}
