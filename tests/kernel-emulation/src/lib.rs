//! The kernels, run on the CPU as they are: a block is an OS thread, a CUDA thread a fibre of it.
//!
//! Schedules are random and seeded, what the kernels' dialect lets tear is torn, ranks can be
//! delayed, a hang is told with block, thread and source line, and ThreadSanitizer knows the fibres.
//! The runtime is C++ (`emulator.h`, `platform.h`), built with g++ when a test wants it.
//!
//! - [`compile`] builds kernels and runtime into an image or a program;
//! - [`scenario`] states what ranks do and must find, and plays it on either;
//! - [`driver`] is a [`Driver`](crossover_device::driver::Driver) over an image: whatever runs on a
//!   device runs without one.

pub mod compile;
pub mod driver;
pub mod runtime;
pub mod scenario;
