//! Backend `hierarchical`: an all-reduce over several nodes in three steps. The ranks of a node
//! reduce and scatter by our own kernels; the ranks that hold the same part, one on each node,
//! all-reduce it by NCCL; the ranks of a node gather. A node's network then carries each byte once
//! instead of once a rank, and all its ports at the same time (`docs/planner.md`).
//!
//! Every backend crate has the first three of these files:
//!
//! - `eligibility` states what the algorithm takes, as data;
//! - `setup` brings the group up, each step voted on;
//! - `session` runs the calls.
//!
//! Below them: `layout` says who is where and which elements are whose, `level` is a group within
//! the group, inside a node or across nodes, with a communicator, a policy and a control plane of
//! its own; `health` tells with each call whether all levels on all nodes came to its end.

mod eligibility;
mod health;
mod layout;
mod level;
mod session;
mod setup;

pub use crate::eligibility::DESCRIPTOR;
pub use crate::setup::Hierarchical;

crossover_core::register_backend!(eligibility::DESCRIPTOR, || Box::new(Hierarchical));
