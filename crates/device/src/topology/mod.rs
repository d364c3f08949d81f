//! Who is connected to whom, by the UUIDs of devices.
//!
//! Facts are read first ([`nvml`], [`kfd`]) and judged afterwards ([`visible`], [`mesh`],
//! [`fabric`]). What judges calls nobody, so that it can be tested on machines that nobody has.
//!
//! A device is its UUID here, never an ordinal: a library that manages devices counts them as they
//! are in the machine, a process as its environment has it.

pub mod fabric;
pub mod facts;
pub mod kfd;
pub mod mesh;
pub mod nvml;
pub mod pci;
pub mod state;
pub mod visible;
