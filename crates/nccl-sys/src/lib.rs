//! NCCL and RCCL as one table of functions, loaded at run time: nothing of either is needed to
//! build, and a machine without them is told so in a sentence.
//!
//! ```no_run
//! use crossover_nccl_sys::{Library, Vendor, layout::UniqueId};
//!
//! let nccl = Library::load(None, Vendor::Nccl)?;
//! let mut id = UniqueId::ZERO;
//! // SAFETY: the pointer is valid for the call.
//! let status = unsafe { (nccl.calls.get_unique_id)(&raw mut id) };
//! # Ok::<(), crossover_nccl_sys::LoadError>(())
//! ```
//!
//! Names are NCCL's without their prefix. Layouts and numbers are in [`layout`]. Tests hold them, and
//! every signature, to the headers of NCCL 2.32.3 and of RCCL 2.27.7 (ROCm 7.2.4), and load both
//! libraries (`cargo xtask nccl` and `cargo xtask rccl` fetch them), which answer some calls without a
//! device.
//!
//! Other releases were compared once, by compiling the same statements: NCCL's headers of thirteen
//! releases from 2.14.3 to 2.31.2, and RCCL's of 2.18.6 (ROCm 6.1), 2.20.5 (6.2) and 2.21.5 (6.3).
//! They agree as far as each has what is bound here. RCCL's header of the 2.30 line was only read.
//!
//! What RCCL 2.27.7 is seen to do where there is no device of AMD's: it loads, has every function but
//! those that take a [`layout::CollConfig`], and says its version. Unlike NCCL it makes no unique id
//! then; that, a communicator, memory and a window all return
//! [`UNHANDLED_CUDA_ERROR`](layout::Status::UNHANDLED_CUDA_ERROR), and it prints a line on standard
//! output for each. A collective of no communicator, which NCCL refuses, ends the process: nobody here
//! calls one. No collective of RCCL's has been run by this project.
//!
//! This crate reads no environment: a path that a variable names is handed to [`Library::load`] by
//! whoever reads settings.

mod advisory;
#[cfg(test)]
mod header;
pub mod layout;
mod load;
mod mapped;
mod table;
mod version;

pub use advisory::{ADVISORIES, Advisory, advisories};
pub use load::{Attempt, Float8, Library, LoadError, Vendor};
pub use table::{Calls, Optional};
pub use version::Version;
