//! Backend `nccl` on the emulated device, with a library of this project's own in NCCL's place
//! (`tests/nccl-stand-in`). It proves the backend, and nothing about NCCL.

mod ends;
mod had;
mod stage;
mod suite;
