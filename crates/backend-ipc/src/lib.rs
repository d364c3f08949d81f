//! Backend `ipc`: collectives between the GPUs of one node, each reading or writing its peers'
//! memory.
//!
//! Declared, not yet runnable: what its algorithms take is stated in `eligibility`, so that policies
//! can name them and explanations and lints reckon with them. Its kernels, set-up and session follow.

mod eligibility;

pub use crate::eligibility::DESCRIPTOR;
