//! Backend `nccl`: NCCL, or RCCL, loaded at run time. It takes every op, dtype and size on every
//! topology of devices: the floor of their chains, and the way past one node.
//!
//! Declared, not yet runnable: what its algorithms take is stated in `eligibility`, so that policies
//! can name them and explanations and lints reckon with them. Its function table, set-up and session
//! follow.

mod eligibility;

pub use crate::eligibility::DESCRIPTOR;
