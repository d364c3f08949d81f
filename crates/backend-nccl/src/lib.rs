//! Backend `nccl`: NCCL, or RCCL, loaded at run time. It takes every op, dtype and size on every
//! topology of devices: the floor of their chains, and the way past one node.
//!
//! Every backend crate has the first three of these files:
//!
//! - `eligibility` states what the algorithms take, as data;
//! - `setup` brings the group up, each step voted on;
//! - `session` runs the calls.
//!
//! Below them: `comm` is this rank's communicator, owned; `calls` says which of the library's calls
//! make one of ours, and `pins` how they are preferred to run; `window` is memory that the library's symmetric kernels may use; `trial` are
//! the first calls, whose results are checked. Nothing hangs without a word: what may never return
//! runs `aside` of the rank's thread, `watch` is the thread that looks whether calls end, and
//! `board` are pages that the ranks of a node share, on which they compare their calls and tell how
//! the group ended; `parting` lets a process end that has such threads. `sharing` is about several ranks on one device.

mod aside;
mod board;
mod calls;
mod closing;
mod comm;
mod eligibility;
mod ends;
mod parting;
mod pins;
mod session;
mod settings;
mod setup;
mod sharing;
mod trial;
mod watch;
mod window;

pub use crate::eligibility::DESCRIPTOR;
pub use crate::setup::Nccl;

crossover_core::register_backend!(eligibility::DESCRIPTOR, || Box::new(Nccl));
