//! The arithmetic: contributions combined over ranks 0, 1, ..., N-1, starting from rank 0's value,
//! in an accumulator, rounded once.
//!
//! - f32, f16, bf16 and the 8-bit floats accumulate in f32, f64 and integers in their own type;
//!   integers wrap.
//! - avg divides the sum once at the end: floats in the accumulator's type, integers toward zero.
//! - min and max give NaN if any contribution is NaN; of values that compare equal, -0.0 and +0.0
//!   among them, the earliest rank's stays.
//! - A result that is NaN is the type's one canonical NaN: which payload an addition of two NaNs
//!   keeps is up to the compiler, and results must not depend on that.
//!
//! An element's bits depend on nothing but that element's contributions: not on where it lies, how
//! many there are, or which rank reduces it.

mod brain;
mod element;
mod fp8;
mod half;
mod kernel;
mod number;

use crossover_core::call::{Dtype, ReduceOp};

use self::element::Plain;
use self::kernel::{Average, Max, Min, Prod, Sum, combine};
use crate::layout::MAX_WORLD;

/// Where the ranks' contributions begin, in rank order. Any alignment.
pub(crate) struct Sources {
    world: usize,
    starts: [*const u8; MAX_WORLD as usize],
}

impl Sources {
    pub(crate) fn new(world: u32, start: impl Fn(u32) -> *const u8) -> Self {
        let mut starts = [std::ptr::null(); MAX_WORLD as usize];
        for (at, rank) in starts.iter_mut().zip(0..world) {
            *at = start(rank);
        }
        Sources { world: world as usize, starts }
    }

    fn get(&self) -> &[*const u8] {
        &self.starts[..self.world]
    }
}

/// Where results go.
pub(crate) struct Target {
    pub(crate) to: *mut u8,
    /// A second copy of the results.
    pub(crate) also: Option<*mut u8>,
    /// Whether `to` is written past the caches.
    pub(crate) stream: bool,
}

/// Reduces `bytes` bytes of every source into the target.
///
/// # Safety
///
/// `bytes` is a multiple of the element's size; every source can be read, and `to` and `also` be
/// written, for that many bytes. `to` may be one of the sources; nothing overlaps otherwise.
pub(crate) unsafe fn reduce(
    dtype: Dtype,
    op: ReduceOp,
    sources: &Sources,
    target: &Target,
    bytes: usize,
) {
    let output = target.to;
    let count = bytes / dtype.size();
    let sources = sources.get();
    macro_rules! with {
        ($element:ty) => {
            match op {
                ReduceOp::Sum => combine::<$element, Sum>(sources, output, count),
                ReduceOp::Prod => combine::<$element, Prod>(sources, output, count),
                ReduceOp::Min => combine::<$element, Min>(sources, output, count),
                ReduceOp::Max => combine::<$element, Max>(sources, output, count),
                ReduceOp::Avg => combine::<$element, Average>(sources, output, count),
            }
        };
    }
    // SAFETY: the caller's promise, in elements instead of bytes.
    unsafe {
        match dtype {
            Dtype::F32 => with!(Plain<f32>),
            Dtype::F16 => with!(half::F16),
            Dtype::Bf16 => with!(brain::Bf16),
            Dtype::F64 => with!(Plain<f64>),
            Dtype::I8 => with!(Plain<i8>),
            Dtype::U8 => with!(Plain<u8>),
            Dtype::I32 => with!(Plain<i32>),
            Dtype::U32 => with!(Plain<u32>),
            Dtype::I64 => with!(Plain<i64>),
            Dtype::U64 => with!(Plain<u64>),
            Dtype::F8E4M3 => with!(fp8::E4M3),
            Dtype::F8E5M2 => with!(fp8::E5M2),
        }
        if let Some(also) = target.also {
            also.copy_from_nonoverlapping(output, bytes);
        }
    }
}

/// One element of 8-bit floats by way of f32, for reference results.
#[cfg(test)]
pub(crate) fn e4m3(codes: &[u8], f: impl Fn(&[f32]) -> f32) -> u8 {
    fp8::by_way_of::<fp8::E4M3>(codes, f)
}

/// The same for the other format.
#[cfg(test)]
pub(crate) fn e5m2(codes: &[u8], f: impl Fn(&[f32]) -> f32) -> u8 {
    fp8::by_way_of::<fp8::E5M2>(codes, f)
}
