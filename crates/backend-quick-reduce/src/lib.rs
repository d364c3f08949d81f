//! Backend `quick_reduce`: all-reduce in two shots whose contributions travel in a narrow codec. It
//! pays where a link's bandwidth is the limit, and where the caller accepts the codec's loss.
//!
//! Declared, not yet runnable: what its algorithms take is stated in `eligibility`, so that policies
//! can name them and explanations and lints reckon with them. Its kernels, set-up and session follow.

mod eligibility;

pub use crate::eligibility::DESCRIPTOR;
