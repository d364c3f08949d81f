//! Backend `host`: collectives between the processes of one node, through shared memory.
//!
//! It needs no device, is exact and rank-ordered, and takes any dtype, count and alignment: the
//! reference that other backends are compared with, and the example to copy for a new one. Every
//! backend crate has the first three of these files:
//!
//! - `eligibility` states what the algorithms take, as data;
//! - `setup` brings the group up, each step voted on;
//! - `session` runs the calls.
//!
//! Below them, from the outside in: `collective` (one file per op) says who copies what where;
//! `exchange` is one step of a call; [`protocol`] is the rendezvous itself, generic so that the
//! model checkers run the very same code; `wait` is how long a rank is patient, `verdict`
//! how a wait ends when it cannot end well; `segment` and `layout` are the memory;
//! `ring` says where in it a middling call puts its data, `distance` how far ranks are from one another;
//! `header` and `mismatch` compare what the ranks asked for; `reduce` is the arithmetic, `memory`
//! the copies, `mover` who does them and how, [`team`] the threads of a rank. `small` is the way of
//! a small call, which needs none of that.

mod collective;
mod distance;
mod eligibility;
mod exchange;
pub mod header;
mod layout;
mod memory;
pub mod mismatch;
mod mover;
pub mod protocol;
pub mod reduce;
mod ring;
mod segment;
mod session;
mod settings;
mod setup;
mod small;
pub mod team;
mod verdict;
mod wait;

#[cfg(test)]
mod tests;

pub use crate::eligibility::DESCRIPTOR;
pub use crate::setup::Host;

crossover_core::register_backend!(eligibility::DESCRIPTOR, || Box::new(Host));
