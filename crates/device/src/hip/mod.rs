//! AMD's devices, through the HIP runtime, which is loaded at run time.
//!
//! Files are those of [`cuda`](crate::cuda), for the same parts of [`Driver`]. What differs:
//!
//! - HIP has no contexts: a context is a device's number, and making it current selects the device.
//! - Device memory that this crate allocates is uncached (`memory`): ranks share it inside kernels,
//!   and on AMD's devices ordinary memory is coherent between kernels only.
//! - Programmatic launches and the fabric do not exist.
//! - Whether a pointer is of virtual memory cannot be asked of every release: some crash. So only
//!   virtual memory allocated here is known as such (`virtual_memory`).

mod api;
mod capture;
mod context;
mod driver;
mod memory;
mod module;
mod provenance;
mod stream;
#[cfg(test)]
mod tests;
mod virtual_memory;

use std::path::Path;

use crate::error::DeviceError;
use crate::hip::api::Api;
use crate::hip::module::Images;
use crate::hip::virtual_memory::Allocations;

#[cfg(doc)]
use crate::driver::Driver;

/// The HIP runtime.
pub struct Hip {
    api: Api,
    allocations: Allocations,
    images: Images,
}

impl Hip {
    /// Loads it: the library at `path`, or else the one that this process has or the system's.
    ///
    /// # Errors
    /// It is not there, lacks a function that is needed, or sees no device.
    pub fn load(path: Option<&Path>) -> Result<Hip, DeviceError> {
        let api = Api::load(path)?;
        context::count(&api)?;
        Ok(Hip { api, allocations: Allocations::default(), images: Images::default() })
    }
}
