//! Backend `ipc`: collectives between the GPUs of one node, each reading or writing its peers'
//! memory.
//!
//! Every backend crate has the first three of these files:
//!
//! - `eligibility` states what the algorithms take, as data;
//! - `setup` brings the group up, each step voted on;
//! - `session` runs the calls.
//!
//! Below them: `memory` is a rank's arena and how it reaches its peers'; `board` the host's pages
//! that all ranks and their kernels see, on which calls are compared and ends are told; `kernels`
//! the entry points; `launch` makes a call into launches, `parts` says which bytes go where,
//! `rows` are the inputs that graphs read where they are. The protocols themselves are in
//! `kernels-common`.

mod board;
mod eligibility;
mod kernels;
mod launch;
mod memory;
mod parts;
mod proof;
mod rows;
mod session;
mod settings;
mod setup;

pub use crate::eligibility::DESCRIPTOR;
pub use crate::setup::Ipc;

crossover_core::register_backend!(eligibility::DESCRIPTOR, || Box::new(Ipc));
