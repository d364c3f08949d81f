//! 512-bit vectors, rounded to bfloat16 by the processor where it can.

use std::arch::x86_64::*;
use std::mem::transmute;

use super::{Avx512, Vector};

/// [`Avx512`] but for that rounding. Nothing but bfloat16 is reduced by it.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Bf16(Avx512);

// SAFETY: a vector. The callers' promise about the machine is every intrinsic's condition.
unsafe impl Vector for Avx512Bf16 {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        Avx512Bf16(unsafe { Avx512::load(from) })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u8, len: usize) -> Self {
        // SAFETY: the caller's promise.
        Avx512Bf16(unsafe { Avx512::load_first(from, len) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.0.store(to) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.0.store_first(to, len) };
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.0.stream(to) };
    }

    #[inline(always)]
    fn fence() {
        Avx512::fence();
    }

    /// The instruction takes subnormals for zeros and keeps what a NaN carries, so vectors with one
    /// of either are rounded without it. All else it rounds to nearest, ties to even, up to
    /// infinity, and never to a subnormal: the least normal f32 is the least normal bfloat16.
    #[inline(always)]
    fn narrow_bf16([lower, upper]: [Self; 2]) -> Self {
        // SAFETY: as promised to `Vector`; both vectors are plain bytes.
        unsafe {
            let [low, high] = [lower, upper].map(|wide| _mm512_castsi512_ps(wide.0.0));
            let (in_low, in_high) = (
                _mm512_fpclass_ps_mask::<OTHERWISE>(low),
                _mm512_fpclass_ps_mask::<OTHERWISE>(high),
            );
            if in_low | in_high != 0 {
                return Avx512Bf16(Avx512::narrow_bf16([lower.0, upper.0]));
            }
            // The lower elements of all pairs, then the upper ones.
            let apart: __m512i = transmute(_mm512_cvtne2ps_pbh(high, low));
            let pairs = _mm512_loadu_si512(PAIRS.as_ptr().cast());
            Avx512Bf16(Avx512(_mm512_permutexvar_epi16(pairs, apart)))
        }
    }
}

/// Quiet NaNs, signalling NaNs and subnormals, as `vfpclassps` numbers its classes.
const OTHERWISE: i32 = 0x01 | 0x80 | 0x20;

/// Where the elements of pairs are among those of [`Avx512Bf16::narrow_bf16`] that are apart.
const PAIRS: [u16; 32] = {
    let (mut pairs, mut at) = ([0; 32], 0);
    while at < 32 {
        pairs[at as usize] = at / 2 + at % 2 * 16;
        at += 1;
    }
    pairs
};
