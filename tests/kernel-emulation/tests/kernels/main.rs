//! Every kernel of every algorithm, on the emulator: 2 to 8 ranks, random schedules, torn accesses, a
//! delayed rank, odd sizes, misaligned tensors, new data in each call, numbers of calls that wrap.
//! What is found is compared with the reference bit for bit. The same under ThreadSanitizer; and
//! kernels that were sabotaged must be found out.

mod call;
#[path = "../common/mod.rs"]
mod common;
mod floor;
mod group;
mod sabotage;
mod sanitized;
mod suite;
