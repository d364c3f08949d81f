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
//! The generic code is compiled once for each instruction set (`isa`, `vector`, `table`); its loop
//! is in `kernel`, the dtypes are in `brain`, `half`, `fp8` and `element`.
//!
//! An element's bits depend on nothing but that element's contributions: not on where it lies, how
//! many there are, or which rank reduces it.

mod brain;
mod element;
mod format;
mod fp8;
mod half;
mod isa;
mod kernel;
mod number;
mod table;
pub(crate) mod vector;

use crossover_core::call::{Dtype, ReduceOp};

#[cfg(test)]
pub(crate) use self::fp8::{e4m3, e5m2};
pub use self::isa::Isa;
use crate::layout::MAX_WORLD;

/// Most contributions that are reduced at once: their number divides an average of the narrowest
/// integers.
pub const MOST_SOURCES: usize = 64;

/// Where the ranks' contributions begin, in rank order. Any alignment.
pub struct Sources {
    world: usize,
    starts: [*const u8; MAX_WORLD as usize],
}

impl Sources {
    /// Of the first `world` ranks, which are at most 16.
    pub fn new(world: u32, start: impl Fn(u32) -> *const u8) -> Self {
        let mut starts = [std::ptr::null(); MAX_WORLD as usize];
        for (at, rank) in starts.iter_mut().zip(0..world) {
            *at = start(rank);
        }
        Sources { world: world as usize, starts }
    }

    /// The same sources, so many bytes later.
    ///
    /// # Safety
    ///
    /// They have as many.
    pub(crate) unsafe fn after(&self, bytes: usize) -> Sources {
        // SAFETY: the caller's.
        Sources::new(self.world as u32, |rank| unsafe { self.starts[rank as usize].add(bytes) })
    }

    fn get(&self) -> &[*const u8] {
        &self.starts[..self.world]
    }
}

/// Where results go.
pub struct Target {
    /// Any alignment.
    pub to: *mut u8,
    /// A second copy of the results.
    pub also: Option<*mut u8>,
    /// Whether `to` is written past the caches.
    pub stream: bool,
    /// Whether `also` is, where its vectors are aligned.
    pub past: bool,
}

impl Target {
    /// One place, by way of the caches.
    #[inline(always)]
    pub fn one(to: *mut u8) -> Target {
        Target { to, also: None, stream: false, past: false }
    }

    /// The same target, so many bytes later.
    ///
    /// # Safety
    ///
    /// It has as many.
    pub(crate) unsafe fn after(&self, bytes: usize) -> Target {
        // SAFETY: the caller's.
        let after = |at: *mut u8| unsafe { at.add(bytes) };
        Target { to: after(self.to), also: self.also.map(after), ..*self }
    }
}

/// Reduces `bytes` bytes of every source into the target.
///
/// # Safety
///
/// `bytes` is a multiple of the element's size; every source can be read, and `to` and `also` be
/// written, for that many bytes. `to` may be one of the sources; nothing overlaps otherwise.
#[inline]
pub unsafe fn reduce(dtype: Dtype, op: ReduceOp, sources: &Sources, target: &Target, bytes: usize) {
    // SAFETY: the caller's promise; the machine has its best instruction set.
    unsafe { reduce_by(Isa::best(), dtype, op, sources, target, bytes) };
}

/// Reduces by the instructions of `isa`.
///
/// # Safety
///
/// As for [`reduce`]; the machine has the instruction set.
#[inline]
pub unsafe fn reduce_by(
    isa: Isa,
    dtype: Dtype,
    op: ReduceOp,
    sources: &Sources,
    target: &Target,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { table::kernel(isa, dtype, op)(sources.get(), target, bytes) };
}

/// Reduces `bytes` bytes of each of `sources`, in their order: at least one, at most [`MOST_SOURCES`].
///
/// # Safety
///
/// As for [`reduce`].
#[inline]
pub unsafe fn reduce_all(
    dtype: Dtype,
    op: ReduceOp,
    sources: &[*const u8],
    target: &Target,
    bytes: usize,
) {
    debug_assert!((1..=MOST_SOURCES).contains(&sources.len()), "{} sources", sources.len());
    // SAFETY: the caller's promise; the machine has its best instruction set.
    unsafe { table::kernel(Isa::best(), dtype, op)(sources, target, bytes) };
}
