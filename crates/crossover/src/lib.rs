//! What an inference engine depends on: collectives, each served by the fastest backend that is
//! right for the call.
//!
//! ```no_run
//! use crossover::{Builder, ReduceOp};
//!
//! // On every rank, under `crossover launch`, torchrun, mpirun or srun:
//! let group = Builder::from_env()?.tag("tp").form()?;
//! let mut hidden = vec![1.0f32; 4096];
//! group.all_reduce_in_place(&mut hidden, ReduceOp::Sum)?;
//! group.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The environment and all files are read once, by [`Builder::from_env`] and [`Builder::form`]. An
//! engine that brings its own control plane, registry or policy calls [`Communicator::form`].

mod builder;
mod device;
mod error;
mod host;
mod recorded;
mod strict;

pub use builder::Builder;
pub use crossover_bootstrap as bootstrap;
pub use crossover_core as core;
pub use crossover_core::call::{CallBuffers, CallSig, Dtype, Mode, Op, ReduceOp, Split};
pub use crossover_core::communicator::{AbortHandle, CallError, CommitError, Communicator};
pub use crossover_core::contract::{Contract, Determinism, Deviation, Deviations};
pub use crossover_core::element::{Element, F8E4M3, F8E5M2};
pub use crossover_policy as policy;
pub use crossover_recorder as recorder;
pub use error::{Error, call_exit_code};
pub use host::report;
pub use recorded::dumps;
