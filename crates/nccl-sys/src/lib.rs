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
//! Names are NCCL's without their prefix. Layouts and numbers are in [`layout`]; a test holds them to
//! the header that the pinned library comes with (`cargo xtask nccl`). RCCL has no such test here: its
//! names, numbers and structures were compared by reading its header (`nccl.h.in` of 2.21.5 and of
//! the 2.30 line), and where the two differ, it is said. This crate reads no environment.

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
