//! What host and kernels share: the parameter of every kernel and the memory that ranks meet in.
//!
//! The structures are written once, here; [`header`] is the same in C, which the kernels include as
//! `kernels-common/crossover/abi.h`. A test holds the file to what this crate says; the header's
//! assertions hold the compilers to it.
//!
//! A rank's memory that peers write is its *arena*, laid out by [`Arena`], the same on every rank.
//! What only the rank's own kernels write is its [`State`]. What host and kernels tell each other
//! is in [`Failure`] and in an abort word, both in pages of the host.

mod arena;
mod declare;
mod header;
mod short;
mod structs;

pub use arena::{Arena, Room, SLOTS};
pub use header::{digest, header};
pub use short::is_short;
pub use structs::*;
