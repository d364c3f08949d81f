//! Reads [`NvidiaFacts`] through NVIDIA's management library, loaded at run time.

mod gpu;
mod pairs;
mod raw;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use super::facts::NvidiaFacts;
use crate::error::DeviceError;

/// The library, as its packages install it for programs.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// What the library says of this machine.
///
/// A single question that it cannot answer leaves its answer open; only what every driver answers
/// is an error.
///
/// # Errors
/// [`DeviceError::Absent`] without the library or without a driver beneath it, and
/// [`DeviceError::Call`] if a GPU's name, UUID or address cannot be had.
pub fn read() -> Result<NvidiaFacts, DeviceError> {
    let nvml = Nvml::builder()
        .lib_path(LIBRARY.as_ref())
        .init()
        .map_err(|error| DeviceError::Absent(absence(&error)))?;
    let raw = raw::Raw::open(LIBRARY)?;
    let driver = nvml.sys_driver_version().map_err(failed("nvmlSystemGetDriverVersion"))?;
    let count = nvml.device_count().map_err(failed("nvmlDeviceGetCount"))?;
    let mut devices = Vec::new();
    let mut gpus = Vec::new();
    for index in 0..count {
        let device = nvml.device_by_index(index).map_err(failed("nvmlDeviceGetHandleByIndex"))?;
        gpus.push(gpu::read(&device, &raw)?);
        devices.push(device);
    }
    let pairs = pairs::read(&devices, &gpus);
    Ok(NvidiaFacts { driver, gpus, pairs })
}

fn absence(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(error) => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            let cause = cause.unwrap_or_else(|| error.to_string());
            format!("no NVIDIA management library: {LIBRARY} cannot be loaded ({cause})")
        }
        NvmlError::DriverNotLoaded => {
            format!("no NVIDIA driver: {LIBRARY} is there and the kernel module is not loaded")
        }
        other => format!("{LIBRARY} does not start: {other}"),
    }
}

/// Tells of a call that failed.
fn failed(call: &'static str) -> impl Fn(NvmlError) -> DeviceError {
    move |error| DeviceError::Call { call, code: raw::code(&error), text: error.to_string() }
}
