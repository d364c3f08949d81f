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

/// A function that runs another one with the machine's best vectors.
macro_rules! by_best_vectors {
    ($(#[$doc:meta])* $name:ident = $by:ident($($arg:ident: $type:ty),*)) => {
        $(#[$doc])*
        pub(crate) unsafe fn $name($($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn avx2($($arg: $type),*) {
                // SAFETY: the caller's promise.
                unsafe { $by::<Avx2>($($arg),*) };
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            unsafe fn avx512($($arg: $type),*) {
                // SAFETY: the caller's promise.
                unsafe { $by::<Avx512>($($arg),*) };
            }
            // SAFETY: the caller's promise; the machine has its best instruction set.
            unsafe {
                match Isa::best() {
                    Isa::Portable => $by::<Portable>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => avx2($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 | Isa::Avx512Bf16 => avx512($($arg),*),
                }
            }
        }
    };
}

by_best_vectors! {
    /// Copies `len` bytes past the caches, for data that nobody nearby reads soon. Whatever is
    /// written is in order before any later store.
    ///
    /// # Safety
    ///
    /// As for [`copy`].
    stream = stream_by(from: *const u8, to: *mut u8, len: usize)
}

by_best_vectors! {
    /// Copies `len` bytes to two places, reading them once.
    ///
    /// # Safety
    ///
    /// As for [`copy`], to both, which do not overlap.
    copy_twice = copy_twice_by(from: *const u8, to: *mut u8, also: *mut u8, len: usize)
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

/// # Safety
///
/// As for [`copy_twice`]; the machine has the vectors.
#[inline(always)]
unsafe fn copy_twice_by<V: Vector>(from: *const u8, to: *mut u8, also: *mut u8, len: usize) {
    let mut at = 0;
    // SAFETY: the pieces follow one another.
    unsafe {
        // By pairs, so that two loads are under way.
        while len - at >= 2 * V::LEN {
            let pair = [V::load(from.add(at)), V::load(from.add(at + V::LEN))];
            for place in [to, also] {
                pair[0].store(place.add(at));
                pair[1].store(place.add(at + V::LEN));
            }
            at += 2 * V::LEN;
        }
        copy(from.add(at), to.add(at), len - at);
        copy(from.add(at), also.add(at), len - at);
    }
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
    fn copies_any_length_twice() {
        let data: Vec<u8> = (0..1200).map(|at| (at * 7 % 251) as u8).collect();
        for len in (0..300).chain([511, 512, 513, 1100]) {
            for (from, to, also) in [(0, 0, 0), (1, 0, 5), (0, 1, 64), (3, 61, 9)] {
                let mut outs = [vec![0xee; 1200], vec![0xee; 1200]];
                let [one, other] = &mut outs;
                // SAFETY: inside all three.
                unsafe {
                    let (one, other) = (one[to..].as_mut_ptr(), other[also..].as_mut_ptr());
                    copy_twice(data[from..].as_ptr(), one, other, len);
                }
                for (out, to) in outs.iter().zip([to, also]) {
                    assert_eq!(out[to..][..len], data[from..][..len]);
                    assert!(out[..to].iter().chain(&out[to + len..]).all(|byte| *byte == 0xee));
                }
            }
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
