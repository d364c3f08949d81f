//! Backend `hierarchical` on the emulated device, which plays several nodes, with a library of this
//! project's own in NCCL's place (`tests/nccl-stand-in`). It proves the backend, and nothing about
//! NCCL.

mod ends;
mod had;
mod nodes;
mod planner;
mod results;
#[path = "../device_nccl/stage.rs"]
#[allow(dead_code, reason = "the other program uses the rest")]
mod stage;
