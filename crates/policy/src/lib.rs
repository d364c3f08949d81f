//! Policies as files: TOML text, laid in layers, to the [`Policy`](crossover_core::policy::Policy)
//! that the core compiles; and the settings that say which files.
//!
//! Read in this order: [`Settings`] (what the operator and the engine set), [`Sources`] (which
//! texts that means, and [`load`](Sources::load)ing them), [`Diagnostic`] (what a mistake in one
//! looks like), [`explain`] (a decision, told to a person or to a program).
//!
//! The syntax is described in `docs/policy.md`. A file can choose and narrow; it never makes
//! a backend take what the backend does not state.

pub mod bytes;
mod device;
mod diagnostic;
pub mod diff;
mod domain;
mod effective;
pub mod explain;
mod file;
mod group;
pub mod import;
pub mod lint;
mod loading;
mod provenance;
pub mod schema;
mod settings;
mod shipped;
pub mod show;
mod sources;
mod stack;
mod suggest;
mod target;
mod verbs;

pub use diagnostic::{Code, Diagnostic, Severity};
pub use effective::Effective;
pub use group::StatedGroup;
pub use provenance::{Preset, Statement};
pub use settings::{
    DeviceChoice, DumpFolder, Override, Recording, Settings, SettingsError, Stated,
};
pub use sources::{PolicyError, Sources};
pub use target::Target;
pub use verbs::Forced;
