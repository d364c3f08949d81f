//! Nothing hangs silently: engines as processes that are killed, stopped, late, misled or do something
//! else than their peers, in every phase of a group's life. Each rank ends by itself, within its
//! deadline and with the right exit code; the dump names the right ranks and the right kind of trouble;
//! nothing is left behind, and where nothing is wrong nothing is said.

mod alike;
mod different;
mod ended;
mod forming;
mod graphs;
mod healthy;
mod job;
mod lost;
mod memory;
