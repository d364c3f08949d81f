//! 256-bit vectors.

use std::arch::x86_64::*;

use super::Vector;
use super::portable::few;

#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256i);

// SAFETY: 32 bytes. The callers' promise about the machine is every intrinsic's condition.
unsafe impl Vector for Avx2 {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: as promised to `Vector`.
        Avx2(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u8, len: usize) -> Self {
        // SAFETY: as promised to `Vector`.
        unsafe {
            if len.is_multiple_of(4) {
                return Avx2(_mm256_maskload_epi32(from.cast(), first(len)));
            }
            let mut all = [0u8; 32];
            few(from, all.as_mut_ptr(), len);
            Self::load(all.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as promised to `Vector`.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, len: usize) {
        // SAFETY: as promised to `Vector`.
        unsafe {
            if len.is_multiple_of(4) {
                return _mm256_maskstore_epi32(to.cast(), first(len), self.0);
            }
            let mut all = [0u8; 32];
            self.store(all.as_mut_ptr());
            few(all.as_ptr(), to, len);
        }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: as promised to `Vector`.
        unsafe { _mm256_stream_si256(to.cast(), self.0) };
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: as promised to `Vector`.
        unsafe { _mm_sfence() };
    }

    #[inline(always)]
    fn widen_f16(self) -> [Self; 2] {
        // SAFETY: as promised to `Vector`.
        unsafe {
            [
                Avx2(_mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(self.0)))),
                Avx2(_mm256_castps_si256(_mm256_cvtph_ps(_mm256_extracti128_si256::<1>(self.0)))),
            ]
        }
    }

    #[inline(always)]
    fn narrow_f16([low, high]: [Self; 2]) -> Self {
        // SAFETY: as promised to `Vector`.
        unsafe {
            let (low, high) = (_mm256_castsi128_si256(rounded(low)), rounded(high));
            Avx2(_mm256_inserti128_si256::<1>(low, high))
        }
    }
}

#[inline(always)]
unsafe fn rounded(wide: Avx2) -> __m128i {
    // SAFETY: as promised to `Vector`.
    unsafe {
        let wide = _mm256_castsi256_ps(wide.canonical_f32().0);
        _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide)
    }
}

/// A mask of the first `len` bytes, in lanes of four.
#[inline(always)]
unsafe fn first(len: usize) -> __m256i {
    // SAFETY: as promised to `Vector`.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(len as i32), lanes)
    }
}
