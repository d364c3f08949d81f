//! Functions of the host in streams: what a library that works on devices does where there are none.

use std::ffi::{c_int, c_ulonglong, c_void};
use std::sync::{Arc, Mutex};

use crossover_device::driver::{Capture, Driver};
use crossover_device::error::DeviceError;

use super::stream::Op;
use super::{Emulated, lock};

/// What is called, with the argument that it was given for.
pub type Function = unsafe extern "C" fn(*mut c_void);

/// How a library puts a function into a stream: 0 says that it is in, 1 that the stream is being
/// captured, and the function is called at every replay; below zero, it was refused.
pub type Entry = unsafe extern "C" fn(c_ulonglong, Function, *mut c_void) -> c_int;

impl Emulated {
    /// Puts a function into a stream. It is called in order by the stream's thread, or, where the
    /// stream is being captured, at every replay.
    ///
    /// # Errors
    ///
    /// There is no such stream, what it did before failed, or its capture is invalid.
    ///
    /// # Safety
    ///
    /// The function may be called with the argument by any thread until the stream's work, or the
    /// last replay, is done.
    pub unsafe fn host_function(
        &self,
        stream: u64,
        function: Function,
        argument: *mut c_void,
    ) -> Result<(), DeviceError> {
        self.enqueue(stream, Op::Call { function, argument: argument as u64 })
    }

    /// This driver's streams, for libraries that know C alone. The process has one such driver: the
    /// last whose entry was asked for.
    pub fn host_function_entry(self: &Arc<Emulated>) -> Entry {
        *lock(&INSTALLED) = Some(Arc::clone(self));
        entry
    }
}

static INSTALLED: Mutex<Option<Arc<Emulated>>> = Mutex::new(None);

unsafe extern "C" fn entry(
    stream: c_ulonglong,
    function: Function,
    argument: *mut c_void,
) -> c_int {
    let Some(driver) = lock(&INSTALLED).clone() else { return -1 };
    let Ok(capture) = driver.capture(stream) else { return -1 };
    // SAFETY: the caller promises what `host_function` asks for.
    match unsafe { driver.host_function(stream, function, argument) } {
        Ok(()) => c_int::from(capture == Capture::Active),
        Err(_) => -1,
    }
}
