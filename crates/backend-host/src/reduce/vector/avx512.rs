//! 512-bit vectors.

use std::arch::x86_64::*;

use super::Vector;

#[derive(Clone, Copy)]
pub(crate) struct Avx512(pub(super) __m512i);

// SAFETY: 64 bytes. The callers' promise about the machine is every intrinsic's condition.
unsafe impl Vector for Avx512 {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: as promised to `Vector`.
        Avx512(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u8, len: usize) -> Self {
        // A masked load does not fault where its mask is clear.
        // SAFETY: as promised to `Vector`.
        Avx512(unsafe { _mm512_maskz_loadu_epi8(first(len), from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as promised to `Vector`.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, len: usize) {
        // SAFETY: as promised to `Vector`.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), first(len), self.0) };
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: as promised to `Vector`.
        unsafe { _mm512_stream_si512(to.cast(), self.0) };
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: as promised to `Vector`.
        unsafe { _mm_sfence() };
    }

    #[inline(always)]
    fn canonical_f32(self) -> Self {
        // SAFETY: as promised to `Vector`.
        unsafe {
            let lanes = _mm512_castsi512_ps(self.0);
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(lanes, lanes);
            let lanes = _mm512_mask_mov_ps(lanes, nan, _mm512_set1_ps(f32::NAN));
            Avx512(_mm512_castps_si512(lanes))
        }
    }

    #[inline(always)]
    fn canonical_f64(self) -> Self {
        // SAFETY: as promised to `Vector`.
        unsafe {
            let lanes = _mm512_castsi512_pd(self.0);
            let nan = _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(lanes, lanes);
            let lanes = _mm512_mask_mov_pd(lanes, nan, _mm512_set1_pd(f64::NAN));
            Avx512(_mm512_castpd_si512(lanes))
        }
    }

    #[inline(always)]
    fn widen_f16(self) -> [Self; 2] {
        // SAFETY: as promised to `Vector`.
        unsafe {
            [
                Avx512(_mm512_castps_si512(_mm512_cvtph_ps(_mm512_castsi512_si256(self.0)))),
                Avx512(_mm512_castps_si512(_mm512_cvtph_ps(_mm512_extracti64x4_epi64::<1>(
                    self.0,
                )))),
            ]
        }
    }

    #[inline(always)]
    fn narrow_f16([low, high]: [Self; 2]) -> Self {
        // SAFETY: as promised to `Vector`.
        unsafe {
            let (low, high) = (rounded(low), rounded(high));
            Avx512(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high))
        }
    }
}

#[inline(always)]
unsafe fn rounded(wide: Avx512) -> __m256i {
    // SAFETY: as promised to `Vector`.
    unsafe {
        let wide = _mm512_castsi512_ps(wide.canonical_f32().0);
        _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(wide)
    }
}

/// A mask of the first `len` of 64 bytes.
#[inline(always)]
fn first(len: usize) -> __mmask64 {
    !(u64::MAX << len)
}
