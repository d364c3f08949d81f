//! Sums of two buffers, in the widest vectors that the processor has.

use std::ptr;

use crate::call::Dtype;

/// Vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// What the compiler may take for granted.
    Base,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The best of this processor.
    pub(crate) fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
                return Isa::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Isa::Avx2;
            }
        }
        Isa::Base
    }
}

/// `output = a + b`, and the same to `also`; bf16 is rounded to nearest, ties to even.
///
/// # Safety
///
/// `bytes` of whole elements at each; `output` may be `a` and overlaps nothing otherwise.
#[inline]
pub(crate) unsafe fn add(
    isa: Isa,
    dtype: Dtype,
    a: *const u8,
    b: *const u8,
    output: *mut u8,
    also: Option<*mut u8>,
    bytes: usize,
) {
    let also = also.unwrap_or(ptr::null_mut());
    // SAFETY: the caller's promise; the instructions are there.
    unsafe {
        match isa {
            Isa::Base => add_any(dtype, a, b, output, also, bytes),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => add_avx2(dtype, a, b, output, also, bytes),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => add_avx512(dtype, a, b, output, also, bytes),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_avx2(
    dtype: Dtype,
    a: *const u8,
    b: *const u8,
    output: *mut u8,
    also: *mut u8,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { add_any(dtype, a, b, output, also, bytes) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn add_avx512(
    dtype: Dtype,
    a: *const u8,
    b: *const u8,
    output: *mut u8,
    also: *mut u8,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { add_any(dtype, a, b, output, also, bytes) }
}

#[inline(always)]
unsafe fn add_any(
    dtype: Dtype,
    a: *const u8,
    b: *const u8,
    output: *mut u8,
    also: *mut u8,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            Dtype::F32 => run::<f32>(a, b, output, also, bytes, |a, b| a + b),
            Dtype::Bf16 => run::<u16>(a, b, output, also, bytes, add_bf16),
        }
    }
}

/// Loops that the compiler turns into vectors: one for each way in which pointers coincide, since it gives
/// up where they might overlap.
#[inline(always)]
unsafe fn run<T: Copy>(
    a: *const u8,
    b: *const u8,
    output: *mut u8,
    also: *mut u8,
    bytes: usize,
    combine: impl Fn(T, T) -> T,
) {
    let (a, b, output, also) = (a.cast::<T>(), b.cast::<T>(), output.cast::<T>(), also.cast::<T>());
    let count = bytes / size_of::<T>();
    // SAFETY: below the count that the caller vouches for; any alignment.
    unsafe {
        let sum = |a: *const T, at| combine(a.add(at).read_unaligned(), b.add(at).read_unaligned());
        match (a == output.cast_const(), also.is_null()) {
            (false, true) => {
                (0..count).for_each(|at| output.add(at).write_unaligned(sum(a, at)));
            }
            (true, true) => {
                (0..count).for_each(|at| output.add(at).write_unaligned(sum(output, at)));
            }
            (false, false) => (0..count).for_each(|at| {
                let sum = sum(a, at);
                output.add(at).write_unaligned(sum);
                also.add(at).write_unaligned(sum);
            }),
            (true, false) => (0..count).for_each(|at| {
                let sum = sum(output, at);
                output.add(at).write_unaligned(sum);
                also.add(at).write_unaligned(sum);
            }),
        }
    }
}

#[inline(always)]
fn add_bf16(a: u16, b: u16) -> u16 {
    let wide = |x: u16| f32::from_bits(u32::from(x) << 16);
    let bits = (wide(a) + wide(b)).to_bits();
    ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) as u16
}
