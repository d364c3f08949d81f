//! IEEE binary16, converted in pieces by the processor where it can.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::element::Element;
use super::number::Number;

pub(crate) struct F16;

/// Elements converted at a time.
const PIECE: usize = 64;

impl Element for F16 {
    const SIZE: usize = 2;
    type Acc = f32;

    #[inline(always)]
    unsafe fn fold(from: *const u8, acc: &mut [f32], f: impl Fn(f32, f32) -> f32) {
        let (mut narrow, mut wide) = ([f16::ZERO; PIECE], [0.0; PIECE]);
        for (piece, acc) in acc.chunks_mut(PIECE).enumerate() {
            let (narrow, wide) = (&mut narrow[..acc.len()], &mut wide[..acc.len()]);
            // SAFETY: the caller's promise.
            unsafe {
                let from = from.add(piece * PIECE * Self::SIZE);
                from.copy_to_nonoverlapping(narrow.as_mut_ptr().cast(), size_of_val(narrow));
            }
            narrow.convert_to_f32_slice(wide);
            for (a, b) in acc.iter_mut().zip(wide) {
                *a = f(*a, *b);
            }
        }
    }

    #[inline(always)]
    unsafe fn store(acc: &[f32], to: *mut u8) {
        let (mut narrow, mut wide) = ([f16::ZERO; PIECE], [0.0; PIECE]);
        for (piece, acc) in acc.chunks(PIECE).enumerate() {
            let (narrow, wide) = (&mut narrow[..acc.len()], &mut wide[..acc.len()]);
            for (to, a) in wide.iter_mut().zip(acc) {
                *to = a.canonical();
            }
            narrow.convert_from_f32_slice(wide);
            // SAFETY: the caller's promise.
            unsafe {
                let to = to.add(piece * PIECE * Self::SIZE);
                to.copy_from_nonoverlapping(narrow.as_ptr().cast(), size_of_val(narrow));
            }
        }
    }
}
