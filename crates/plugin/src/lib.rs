//! The C API for engines that are not written in Rust: a shared library, and `include/crossover.h`.
//!
//! A call's way: a function of `group`, `collective`, `capture` or `report` reads its arguments
//! (`arguments`, `words`), refuses what makes no sense, and asks the facade. Every function returns a
//! [`Status`], which is the exit code that the program `crossover` would end with; the sentence to it
//! is [`crossover_last_error`]'s. No panic crosses the boundary (`failure::guard`).
//!
//! Structures carry their size first, so that a program built with an older header goes on
//! working with a newer library, and one built with a newer header is refused only where it uses
//! what this library does not know.

mod arguments;
mod capture;
mod collective;
mod config;
mod failure;
mod group;
mod kernels;
mod logging;
mod notes;
mod report;
mod words;

pub use crate::capture::{
    Call, crossover_commit, crossover_discard, crossover_explain, crossover_leave_stream,
    crossover_prepare,
};
pub use crate::collective::{
    crossover_all_gather, crossover_all_reduce, crossover_all_to_all, crossover_broadcast,
    crossover_reduce_scatter,
};
pub use crate::config::{Config, Setting};
pub use crate::failure::{Status, crossover_last_error};
pub use crate::group::{
    Group, crossover_abort, crossover_check, crossover_group_close, crossover_group_create,
    crossover_group_free, crossover_group_rank, crossover_group_world,
};
pub use crate::notes::{crossover_note_replay, crossover_note_site, crossover_note_state};
pub use crate::report::{
    crossover_api_version, crossover_counters, crossover_facts, crossover_text_free,
    crossover_version,
};
pub use crate::words::{Dtype, Mode, Op, ReduceOp};
