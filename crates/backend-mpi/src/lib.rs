//! Backend `mpi`: collectives on host memory across nodes, over an MPI library.
//!
//! It is the floor of the host chain past one node: any dtype, count and alignment, exact and
//! rank-ordered as backend `host` is, on whatever network the library knows. The library is loaded at
//! run time by the standard's binary interface ([`DESCRIPTOR`] has its settings), the ranks are
//! processes that its launcher has started.
//!
//! As in every backend:
//!
//! - `eligibility` states what the algorithms take, as data;
//! - `setup` brings the group up, each step voted on;
//! - `session` runs the calls.
//!
//! Below them: `collective` says who gives what to whom, one op after the other; `round` is one
//! exchange of a call, in a call's first one ranks compare what they call; `comm` is a communicator and `staging` the
//! memory that MPI may touch, `wait` how long a rank is patient. `watch` sees over TCP that peers live, and carries
//! what ended a group, on connections that `connect` makes; `keeper` has the threads that make MPI's calls that block, `errors` what
//! becomes of a failure; `library` is MPI.

mod collective;
mod comm;
mod connect;
mod eligibility;
mod errors;
mod keeper;
mod library;
mod round;
mod session;
mod settings;
mod setup;
mod staging;
mod wait;
mod watch;

pub use crate::eligibility::DESCRIPTOR;
pub use crate::setup::Mpi;

crossover_core::register_backend!(eligibility::DESCRIPTOR, || Box::new(Mpi));
