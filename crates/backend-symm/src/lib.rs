//! Backend `symm`: collectives over symmetric memory, one heap per rank and alike on all, so that an
//! offset is the same object everywhere, on one node or over NVLink between nodes.
//!
//! Declared, not yet runnable: what its algorithms take is stated in `eligibility`, so that policies
//! can name them and explanations and lints reckon with them. Its kernels, set-up and session follow.

mod eligibility;

pub use crate::eligibility::DESCRIPTOR;
