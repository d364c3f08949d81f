//! IEEE binary16, converted by the processor where it can.

use super::element::Element;
use super::vector::Vector;

pub(crate) struct F16;

impl Element for F16 {
    const SIZE: usize = 2;
    type Acc = f32;
    type Wide<V: Vector> = [V; 2];

    #[inline(always)]
    fn widen<V: Vector>(elements: V) -> [V; 2] {
        elements.widen_f16()
    }

    #[inline(always)]
    fn round<V: Vector>(wide: [V; 2]) -> V {
        V::narrow_f16(wide)
    }
}
