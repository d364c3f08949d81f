//! The HIP runtime as a table of functions, loaded at run time: nothing of ROCm is needed to build,
//! and a machine without it is told so in a sentence.
//!
//! ```no_run
//! let hip = crossover_hip_sys::Hip::load(None)?;
//! let mut devices = 0;
//! // SAFETY: the pointer is valid for the call.
//! let status = unsafe { (hip.calls.get_device_count)(&raw mut devices) };
//! # Ok::<(), crossover_hip_sys::LoadError>(())
//! ```
//!
//! Names are HIP's without their prefix. Layouts and numbers are in [`layout`]; tests hold them to
//! the headers of an installed ROCm. A structure whose layout changed between releases is not bound.

pub mod layout;
mod load;
mod table;

pub use load::{Hip, LoadError, Properties};
pub use table::{Calls, DeviceUuid, Vmm};
