//! A small engine that goes wrong on purpose, for tests of what is said then. It works as an engine
//! does: it forms groups, notes its state each step, names its sites, makes calls eagerly or replays
//! graphs of them, and looks at every result. Where its data is a setting says, so that it runs on
//! host memory, on the emulated device and on a real one.

mod busy;
pub mod fault;
mod form;
mod steps;
mod tensors;
mod wire;

pub use form::{Groups, form};
pub use steps::{Ended, Engine, Work};
