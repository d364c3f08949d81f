//! Nothing hangs silently: what each rank did last, kept where a crash cannot reach it, and read
//! by whoever is left.
mod about;
mod diagnosis;
mod image;
mod layout;

pub use about::{About, Process};
pub use diagnosis::{Branch, Class, Diagnosis, GroupState, RankState, Verdict};
pub use image::{Image, Life, Phase, Progress, Record, What};
pub use layout::BYTES;
