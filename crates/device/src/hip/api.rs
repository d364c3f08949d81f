//! The runtime's functions, and what their statuses mean.

use std::ffi::{CStr, c_int, c_void};
use std::path::Path;

use crossover_hip_sys::layout::SUCCESS;
use crossover_hip_sys::{Calls, Hip as Runtime};

use crate::error::DeviceError;

pub(super) struct Api {
    pub(super) runtime: Runtime,
}

impl Api {
    pub(super) fn load(path: Option<&Path>) -> Result<Self, DeviceError> {
        let runtime = Runtime::load(path).map_err(|why| DeviceError::Absent(why.to_string()))?;
        Ok(Self { runtime })
    }

    #[inline]
    pub(super) fn calls(&self) -> &Calls {
        &self.runtime.calls
    }

    /// A status as a result. Names the function that returned it.
    #[inline]
    pub(super) fn check(&self, call: &'static str, status: c_int) -> Result<(), DeviceError> {
        if status == SUCCESS { Ok(()) } else { Err(self.failed(call, status)) }
    }

    /// The failure is reported here and now, so it is taken back from the thread's last error: an
    /// engine that asks for that later must not find ours.
    #[cold]
    pub(super) fn failed(&self, call: &'static str, code: c_int) -> DeviceError {
        // SAFETY: HIP's texts are constants of the library, which stays loaded.
        let text = unsafe {
            (self.calls().get_last_error)();
            let text = (self.calls().get_error_string)(code);
            if text.is_null() { c"unknown status" } else { CStr::from_ptr(text) }
        };
        DeviceError::Call { call, code, text: text.to_string_lossy().into_owned() }
    }
}

/// A vendor's pointer as a number.
pub(super) fn number(pointer: *mut c_void) -> u64 {
    pointer as usize as u64
}

/// A number that came from [`number`], or from an engine, as the vendor's pointer.
pub(super) fn pointer(number: u64) -> *mut c_void {
    number as usize as *mut c_void
}
