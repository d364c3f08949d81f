//! Backend `nvls`: collectives over NVLink multicast. The switch adds up what it reads from all
//! ranks, and hands out what one of them writes.
//!
//! Declared, not yet runnable: what its algorithms take is stated in `eligibility`, so that policies
//! can name them and explanations and lints reckon with them. Its kernels, set-up and session follow.

mod eligibility;

pub use crate::eligibility::DESCRIPTOR;
