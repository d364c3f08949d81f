//! The only crate that calls a GPU vendor. Drivers are loaded at run time: a machine without one is
//! told so in a sentence.

pub mod driver;
pub mod error;
