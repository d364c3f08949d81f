//! Rust types of elements, for the typed calls on host memory.

use crate::call::Dtype;

/// A type whose slices a host collective can take.
///
/// # Safety
///
/// `DTYPE` describes the type exactly: its size is `DTYPE.size()`, every bit pattern is a valid
/// value, and it has no padding.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The dtype it is.
    const DTYPE: Dtype;
}

/// An OCP FP8 E4M3 value, as its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

/// An OCP FP8 E5M2 value, as its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

macro_rules! elements {
    ($($ty:ty => $dtype:ident,)+) => {$(
        // SAFETY: a primitive, or a `repr(transparent)` wrapper of one, of that size.
        unsafe impl Element for $ty {
            const DTYPE: Dtype = Dtype::$dtype;
        }
        const _: () = assert!(size_of::<$ty>() == Dtype::$dtype.size());
    )+};
}

elements! {
    f32 => F32,
    half::f16 => F16,
    half::bf16 => Bf16,
    f64 => F64,
    i8 => I8,
    u8 => U8,
    i32 => I32,
    u32 => U32,
    i64 => I64,
    u64 => U64,
    F8E4M3 => F8E4M3,
    F8E5M2 => F8E5M2,
}
