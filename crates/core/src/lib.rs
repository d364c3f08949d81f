//! Dispatch of collectives to the first registered backend that every rank agrees may run them.
//!
//! Read in this order: [`call`] (what is asked), [`contract`] (what the result must be), [`facts`]
//! (what the ranks agreed about the group), [`eligibility`] (who may answer), [`backend`] (the
//! plug-in seam), [`policy`] (in what order), [`plan`] (policy and backends compiled for one
//! group), [`communicator`] (what an engine holds), [`record`] (what is kept of its calls). Below
//! them: [`bootstrap`] (the channel that ranks meet over) and [`agreement`] (votes; values that are
//! the same on every rank by type).
//!
//! This crate calls no vendor and opens no file.

pub mod ablation;
pub mod agreement;
pub mod backend;
pub mod bootstrap;
pub mod bytes;
pub mod call;
pub mod camps;
pub mod communicator;
pub mod contract;
pub mod counters;
pub mod digest;
pub mod element;
pub mod eligibility;
pub mod explain;
pub mod facts;
pub mod form;
pub mod plan;
pub mod policy;
pub mod record;
pub mod registry;
pub mod settings;
mod typed;
mod validate;
pub mod verdict;
pub mod vocabulary;

#[doc(hidden)]
pub use inventory;
