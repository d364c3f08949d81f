//! Reads [`NvidiaFacts`] through NVIDIA's management library, loaded at run time.

mod gpu;
mod pairs;
mod raw;
mod state;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::facts::NvidiaFacts;
use super::state::GpuState;
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
    let nvml = start()?;
    let raw = raw::Raw::open(LIBRARY)?;
    let driver = nvml.sys_driver_version().map_err(failed("nvmlSystemGetDriverVersion"))?;
    let devices = devices(&nvml)?;
    let gpus = devices.iter().map(|device| gpu::read(device, &raw));
    let gpus = gpus.collect::<Result<Vec<_>, _>>()?;
    let pairs = pairs::read(&devices, &gpus);
    Ok(NvidiaFacts { driver, gpus, pairs })
}

/// How each GPU of this machine is at this moment, in NVML's order.
///
/// # Errors
/// As for [`read`].
pub fn states() -> Result<Vec<GpuState>, DeviceError> {
    let nvml = start()?;
    devices(&nvml)?.iter().map(state::read).collect()
}

fn start() -> Result<Nvml, DeviceError> {
    let nvml = Nvml::builder().lib_path(LIBRARY.as_ref()).init();
    nvml.map_err(|error| DeviceError::Absent(absence(&error)))
}

fn devices(nvml: &Nvml) -> Result<Vec<Device<'_>>, DeviceError> {
    let count = nvml.device_count().map_err(failed("nvmlDeviceGetCount"))?;
    let device = |index| nvml.device_by_index(index).map_err(failed("nvmlDeviceGetHandleByIndex"));
    (0..count).map(device).collect()
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
