//! Moving bytes.

use crate::reduce::Isa;
#[cfg(target_arch = "x86_64")]
use crate::reduce::vector::{Avx2, Avx512};
use crate::reduce::vector::{Portable, Vector};

/// Copies `len` bytes.
///
/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`], of bytes: any alignment.
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { to.copy_from_nonoverlapping(from, len) };
}

/// Copies `len` bytes, at most 48 of them without a call: by two or three overlapping pieces.
///
/// # Safety
///
/// As for [`copy`].
#[inline(always)]
pub(crate) unsafe fn copy_small(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: each piece is inside the caller's `len` bytes.
    unsafe {
        if len > 48 {
            copy(from, to, len);
        } else if len >= 16 {
            let last = len - 16;
            let middle = last.min(16);
            let pieces = [0, middle, last].map(|at| from.add(at).cast::<u128>().read_unaligned());
            for (at, piece) in [0, middle, last].into_iter().zip(pieces) {
                to.add(at).cast::<u128>().write_unaligned(piece);
            }
        } else if len >= 8 {
            let last = len - 8;
            let pieces = [0, last].map(|at| from.add(at).cast::<u64>().read_unaligned());
            to.cast::<u64>().write_unaligned(pieces[0]);
            to.add(last).cast::<u64>().write_unaligned(pieces[1]);
        } else {
            let mut pieces = [0; 8];
            for (at, piece) in pieces.iter_mut().enumerate().take(len) {
                *piece = from.add(at).read();
            }
            for (at, piece) in pieces.iter().enumerate().take(len) {
                to.add(at).write(*piece);
            }
        }
    }
}

/// Copies `len` bytes past the caches, for data that nobody nearby reads soon. Whatever is
/// written is in order before any later store.
///
/// # Safety
///
/// As for [`copy`].
pub(crate) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise; the machine has its best instruction set.
    unsafe {
        match Isa::best() {
            Isa::Portable => stream_by::<Portable>(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => stream_avx2(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Bf16 => stream_avx512(from, to, len),
        }
    }
}

/// # Safety
///
/// As for [`stream`], with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn stream_avx2(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { stream_by::<Avx2>(from, to, len) };
}

/// # Safety
///
/// As for [`stream`], with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn stream_avx512(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { stream_by::<Avx512>(from, to, len) };
}

/// # Safety
///
/// As for [`stream`]; the machine has the vectors.
#[inline(always)]
unsafe fn stream_by<V: Vector>(from: *const u8, to: *mut u8, len: usize) {
    let mut at = to.align_offset(V::LEN).min(len);
    // SAFETY: the pieces follow one another; the vectors are aligned in `to`.
    unsafe {
        copy(from, to, at);
        while len - at >= V::LEN {
            V::load(from.add(at)).stream(to.add(at));
            at += V::LEN;
        }
        copy(from.add(at), to.add(at), len - at);
    }
    V::fence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_every_small_length_and_nothing_else() {
        let data: Vec<u8> = (1..=64).collect();
        for len in 0..=48 {
            let mut out = [0xee; 64];
            // SAFETY: both have more.
            unsafe { copy_small(data[3..].as_ptr(), out[5..].as_mut_ptr(), len) };
            assert_eq!(out[5..5 + len], data[3..3 + len]);
            assert!(out[..5].iter().chain(&out[5 + len..]).all(|byte| *byte == 0xee), "{len}");
        }
    }

    #[test]
    fn streams_any_length_from_and_to_any_place() {
        let data: Vec<u8> = (0..1200).map(|at| (at * 7 % 251) as u8).collect();
        for len in (0..300).chain([511, 512, 513, 1100]) {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 61), (64, 16)] {
                let mut out = vec![0xee; 1200];
                // SAFETY: inside both.
                unsafe { stream(data[from..].as_ptr(), out[to..].as_mut_ptr(), len) };
                assert_eq!(out[to..][..len], data[from..][..len]);
                assert!(out[..to].iter().chain(&out[to + len..]).all(|byte| *byte == 0xee));
            }
        }
    }
}
