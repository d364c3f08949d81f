//! bfloat16: the upper half of an f32.

use super::element::Element;

pub(crate) struct Bf16;

impl Element for Bf16 {
    const SIZE: usize = 2;
    type Acc = f32;

    #[inline(always)]
    unsafe fn fold(from: *const u8, acc: &mut [f32], f: impl Fn(f32, f32) -> f32) {
        let from = from.cast::<u16>();
        for (at, a) in acc.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            let bits = unsafe { from.add(at).read_unaligned() };
            *a = f(*a, f32::from_bits(u32::from(bits) << 16));
        }
    }

    #[inline(always)]
    unsafe fn store(acc: &[f32], to: *mut u8) {
        let to = to.cast::<u16>();
        for (at, a) in acc.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { to.add(at).write_unaligned(round(*a)) };
        }
    }
}

/// To nearest, ties to even. Without a branch, so that it compiles to vector code; the addition
/// carries into the exponent as it should, up to infinity.
#[inline(always)]
fn round(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    (if value.is_nan() { CANONICAL_NAN } else { rounded }) as u16
}

const CANONICAL_NAN: u32 = 0x7fc0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_as_the_half_crate_does() {
        // Every upper half, with lower halves around the tie.
        for upper in 0..=u16::MAX {
            for lower in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits(u32::from(upper) << 16 | lower);
                let expected = match value.is_nan() {
                    true => CANONICAL_NAN as u16,
                    false => half::bf16::from_f32(value).to_bits(),
                };
                assert_eq!(round(value), expected, "{value} {upper:04x}{lower:04x}");
            }
        }
    }
}
