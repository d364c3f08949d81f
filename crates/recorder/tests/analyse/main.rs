//! The analyser on simulated ranks: every class, who is named, and what must not be judged.

mod damaged;
mod devices;
mod lost;
mod parted;
mod properties;
mod report;
mod shifted;
mod sim;
mod sorted;
mod waiting;
