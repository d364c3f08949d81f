//! NVIDIA's devices, through the CUDA driver, which is loaded at run time.
//!
//! What it calls and how that is found is in `api`; the rest follows the parts of [`Driver`].
//!
//! An engine may be recording a graph on another thread while a group is set up. The driver then
//! refuses what could disturb the recording, allocating for instance, and ends the recording with
//! an error. Nothing here touches another's stream, so such calls are made in the relaxed mode
//! (`capture::Relaxed`).

mod api;
mod capture;
mod context;
mod driver;
mod image;
mod memory;
mod module;
mod provenance;
mod stream;
mod virtual_memory;

use crate::cuda::api::Api;
use crate::error::DeviceError;

#[cfg(doc)]
use crate::driver::Driver;

/// The CUDA driver.
pub struct Cuda {
    api: Api,
    /// Has every device programmatic launches?
    programmatic: bool,
}

impl Cuda {
    /// Loads it.
    ///
    /// # Errors
    /// It is not there, is older than CUDA 12.0, or sees no device.
    pub fn load() -> Result<Cuda, DeviceError> {
        let api = Api::load()?;
        let programmatic = context::every_device_is_programmatic(&api)?;
        Ok(Cuda { api, programmatic })
    }
}

/// A vendor's pointer as a number.
fn number<T>(pointer: *mut T) -> u64 {
    pointer as usize as u64
}

/// A number that came from [`number`], or from an engine, as the vendor's pointer.
fn pointer<T>(number: u64) -> *mut T {
    number as usize as *mut T
}
