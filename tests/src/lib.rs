//! The harness: ranks as threads, data that can show a wrong sum, a reference to compare with,
//! and the conformance suite that every algorithm of every backend is put through.

pub mod conformance;
pub mod data;
pub mod groups;
pub mod ported;
pub mod reference;
pub mod soak;
pub mod unreal;
