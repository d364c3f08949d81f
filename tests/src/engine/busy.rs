//! Work of a device that is nobody's: a function of the host in its stream, which sleeps.

use std::ffi::{c_int, c_ulonglong, c_void};
use std::time::Duration;

use crossover_device::driver::Vendor;
use crossover_device::error::DeviceError;
use crossover_device::stream::Stream;
use crossover_kernel_emulation::driver::Emulated;

/// How long it takes.
const BUSY: Duration = Duration::from_secs(15);

type Function = unsafe extern "C" fn(*mut c_void);

/// Puts it into the stream. `emulated` is the driver, if it is the emulated one.
pub(super) fn occupy(stream: &Stream, emulated: Option<&Emulated>) -> Result<(), DeviceError> {
    unsafe extern "C" fn sleep(_: *mut c_void) {
        std::thread::sleep(BUSY);
    }
    match (stream.device().driver().vendor(), emulated) {
        (Vendor::Emulated, Some(driver)) => {
            // SAFETY: the function takes no argument.
            unsafe { driver.host_function(stream.raw(), sleep, std::ptr::null_mut()) }
        }
        (Vendor::Cuda, _) => launch_on_host(stream, sleep),
        (vendor, _) => {
            Err(DeviceError::Invalid(format!("the engine cannot keep a {vendor:?} device busy")))
        }
    }
}

/// By the vendor's own function, which nothing but this needs.
fn launch_on_host(stream: &Stream, function: Function) -> Result<(), DeviceError> {
    type Launch = unsafe extern "C" fn(c_ulonglong, Function, *mut c_void) -> c_int;
    const CALL: &str = "cuLaunchHostFunc";
    let absent = |e: libloading::Error| DeviceError::Absent(format!("{CALL}: {e}"));
    // SAFETY: the driver that the stream is of: it is loaded already, and nothing is run.
    let driver = unsafe { libloading::Library::new("libcuda.so.1") }.map_err(absent)?;
    // SAFETY: the signature is cuda.h's; a stream is a pointer, and as wide as it.
    let launch = unsafe { driver.get::<Launch>(CALL.as_bytes()) }.map_err(absent)?;
    // SAFETY: the stream lives, and the function takes no argument.
    match unsafe { launch(stream.raw(), function, std::ptr::null_mut()) } {
        0 => Ok(()),
        code => Err(DeviceError::Call { call: CALL, code, text: "see cuda.h".to_owned() }),
    }
}
