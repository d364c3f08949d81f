//! The stand-in for NCCL by itself, through the table of `crossover-nccl-sys`: what the tests of backend
//! `nccl` rest on. Ranks are threads, and in `processes` processes.

mod failures;
mod group;
mod processes;
mod refusals;
mod streams;
mod values;
