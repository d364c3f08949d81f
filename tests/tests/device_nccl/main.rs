//! Backend `nccl` on the emulated device, with a library of this project's own in NCCL's place
//! (`tests/nccl-stand-in`), which proves the backend, and nothing about NCCL; and, in `real`, on a
//! real device through NCCL itself.

mod ends;
mod exits;
mod had;
mod real;
mod stage;
mod suite;
