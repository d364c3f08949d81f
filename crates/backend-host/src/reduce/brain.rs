//! bfloat16: the upper half of an f32.

use super::element::Element;
use super::vector::{Vector, map};

pub(crate) struct Bf16;

impl Element for Bf16 {
    const SIZE: usize = 2;
    type Acc = f32;
    /// The lower and the upper elements of pairs of 32 bits.
    type Wide<V: Vector> = [V; 2];

    #[inline(always)]
    fn widen<V: Vector>(elements: V) -> [V; 2] {
        [map(elements, |pair: u32| pair << 16), map(elements, |pair: u32| pair & 0xffff_0000)]
    }

    #[inline(always)]
    fn round<V: Vector>(wide: [V; 2]) -> V {
        V::narrow_bf16(wide)
    }
}
