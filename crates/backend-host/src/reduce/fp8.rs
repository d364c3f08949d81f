//! The 8-bit floats of the Open Compute Project's OFP8 specification.
//!
//! Rounding is to nearest, ties to even, in the specification's saturating mode, which is also
//! what accelerators' saturating conversions do: whatever is larger than the largest finite value
//! becomes that value, an infinity too. So E5M2 can bring an infinity in, but no reduction brings
//! one out. A NaN becomes 0x7f in both formats.

use super::element::Element;
use super::format::Format;
use super::vector::{Vector, map, zip};

/// Four bits of exponent, three of mantissa; no infinity, and NaN is S.1111.111.
pub(crate) struct E4M3;

/// Five bits of exponent, two of mantissa; infinity and NaN as in IEEE formats.
pub(crate) struct E5M2;

const E4M3_FORMAT: Format =
    Format { mantissa: 3, bias: 7, largest: 0x7e, special: 0x7f, nan: 0x7f };
const E5M2_FORMAT: Format =
    Format { mantissa: 2, bias: 15, largest: 0x7b, special: 0x7c, nan: 0x7f };

impl Element for E4M3 {
    const SIZE: usize = 1;
    type Acc = f32;
    type Wide<V: Vector> = [V; 4];

    #[inline(always)]
    fn widen<V: Vector>(elements: V) -> [V; 4] {
        quarters(elements, |code| E4M3_FORMAT.widen(code, 8))
    }

    #[inline(always)]
    fn round<V: Vector>(wide: [V; 4]) -> V {
        joined(wide, |value| E4M3_FORMAT.narrow(value, 8))
    }
}

impl Element for E5M2 {
    const SIZE: usize = 1;
    type Acc = f32;
    type Wide<V: Vector> = [V; 4];

    #[inline(always)]
    fn widen<V: Vector>(elements: V) -> [V; 4] {
        quarters(elements, |code| E5M2_FORMAT.widen(code, 8))
    }

    #[inline(always)]
    fn round<V: Vector>(wide: [V; 4]) -> V {
        joined(wide, |value| E5M2_FORMAT.narrow(value, 8))
    }
}

/// Every fourth element each, so that lanes stay where they are.
#[inline(always)]
fn quarters<V: Vector>(elements: V, widen: impl Fn(u32) -> u32) -> [V; 4] {
    [
        map(elements, |four: u32| widen(four & 0xff)),
        map(elements, |four: u32| widen(four >> 8 & 0xff)),
        map(elements, |four: u32| widen(four >> 16 & 0xff)),
        map(elements, |four: u32| widen(four >> 24)),
    ]
}

/// The inverse.
#[inline(always)]
fn joined<V: Vector>([a, b, c, d]: [V; 4], narrow: impl Fn(u32) -> u32) -> V {
    let codes = map(a, |a: u32| narrow(a));
    let codes = zip(codes, b, |codes, b: u32| codes | narrow(b) << 8);
    let codes = zip(codes, c, |codes, c: u32| codes | narrow(c) << 16);
    zip(codes, d, |codes, d: u32| codes | narrow(d) << 24)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use self::tests::{e4m3, e5m2};
