//! Topology from facts: every judgement on machines that are not there.

mod fabric;
mod kfd;
mod machines;
mod matrix;
mod mesh_amd;
mod mesh_nvidia;
mod nvml;
mod visible_amd;
mod visible_cuda;
