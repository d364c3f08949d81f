//! bfloat16: the upper half of an f32.

use super::element::Element;
use super::vector::{Vector, map, zip};

pub(crate) struct Bf16;

impl Element for Bf16 {
    const SIZE: usize = 2;
    type Acc = f32;
    /// The lower and the upper elements of pairs of 32 bits.
    type Wide<V: Vector> = [V; 2];

    #[inline(always)]
    fn widen<V: Vector>(elements: V) -> [V; 2] {
        [map(elements, |pair: u32| pair << 16), map(elements, |pair: u32| pair & UPPER)]
    }

    #[inline(always)]
    fn round<V: Vector>([lower, upper]: [V; 2]) -> V {
        zip(lower.canonical_f32(), upper.canonical_f32(), |lower, upper| {
            nearest(lower) >> 16 | nearest(upper) & UPPER
        })
    }
}

const UPPER: u32 = 0xffff_0000;

/// Rounds to the upper half, ties to even, of bits that are not a NaN's but for the canonical one.
/// The addition carries into the exponent as it should, up to infinity.
#[inline(always)]
fn nearest(bits: u32) -> u32 {
    bits.wrapping_add(0x7fff + (bits >> 16 & 1))
}
