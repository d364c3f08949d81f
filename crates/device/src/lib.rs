//! The only crate that calls a GPU vendor. Drivers are loaded at run time: a machine without one is
//! told so in a sentence.
//!
//! [`open`] gives a [`Device`](device::Device) by its name, `cuda:0`. What is owned on it frees
//! itself: [`memory`], [`stream`]s and events, [`graph`]s, [`module`]s and kernels, and what
//! [`sharing`] maps of other processes. All of it goes through the [`Driver`](driver::Driver) of
//! the device's vendor, which is the seam: one implementation a vendor, and [`install`] for one
//! more.

pub mod cuda;
pub mod device;
pub mod driver;
pub mod error;
pub mod graph;
pub mod hip;
pub mod images;
pub mod library;
pub mod memory;
pub mod module;
mod registry;
pub mod sharing;
pub mod stream;
pub mod topology;
pub mod verdict;

pub use crate::registry::{driver, install, open};
