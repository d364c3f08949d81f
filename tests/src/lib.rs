//! The harness: ranks as threads, data that can show a wrong sum, a reference to compare with,
//! and the conformance suites that every algorithm of every backend is put through.

pub mod conformance;
pub mod data;
pub mod device;
pub mod engine;
pub mod groups;
pub mod mpi;
pub mod nccl;
pub mod ported;
pub mod reference;
pub mod soak;
pub mod unreal;
