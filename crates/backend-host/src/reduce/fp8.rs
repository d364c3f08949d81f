//! The 8-bit floats of the Open Compute Project's OFP8 specification.
//!
//! Rounding is to nearest, ties to even, in the specification's saturating mode, which is also
//! what accelerators' saturating conversions do: whatever is larger than the largest finite value
//! becomes that value, an infinity too. So E5M2 can bring an infinity in, but no reduction brings
//! one out. A NaN becomes 0x7f in both formats.

use super::element::Element;

/// Four bits of exponent, three of mantissa; no infinity, and NaN is S.1111.111.
pub(crate) struct E4M3;

/// Five bits of exponent, two of mantissa; infinity and NaN as in IEEE formats.
pub(crate) struct E5M2;

impl Element for E4M3 {
    const SIZE: usize = 1;
    type Acc = f32;

    #[inline(always)]
    unsafe fn fold(from: *const u8, acc: &mut [f32], f: impl Fn(f32, f32) -> f32) {
        // SAFETY: the caller's promise.
        unsafe { fold(&E4M3_VALUES, from, acc, f) };
    }

    #[inline(always)]
    unsafe fn store(acc: &[f32], to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { store::<3, 7, 0x7e>(acc, to) };
    }
}

impl Element for E5M2 {
    const SIZE: usize = 1;
    type Acc = f32;

    #[inline(always)]
    unsafe fn fold(from: *const u8, acc: &mut [f32], f: impl Fn(f32, f32) -> f32) {
        // SAFETY: the caller's promise.
        unsafe { fold(&E5M2_VALUES, from, acc, f) };
    }

    #[inline(always)]
    unsafe fn store(acc: &[f32], to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { store::<2, 15, 0x7b>(acc, to) };
    }
}

static E4M3_VALUES: [f32; 256] = values::<3, 7>(0x7f, None);
static E5M2_VALUES: [f32; 256] = values::<2, 15>(0x7d, Some(0x7c));

/// The value of every code. Magnitudes from `nan` on are NaN.
const fn values<const MANTISSA: u32, const BIAS: i32>(nan: u8, infinity: Option<u8>) -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        let magnitude = code as u8 & 0x7f;
        let value = if magnitude >= nan {
            f32::NAN
        } else if matches!(infinity, Some(infinity) if magnitude == infinity) {
            f32::INFINITY
        } else {
            let exponent = (magnitude >> MANTISSA) as i32;
            let fraction = (magnitude & ((1 << MANTISSA) - 1)) as u32;
            let (significand, exponent) = match exponent {
                0 => (fraction, 1),
                _ => (fraction | 1 << MANTISSA, exponent),
            };
            significand as f32 * power_of_two(exponent - BIAS - MANTISSA as i32)
        };
        table[code] = if code >= 0x80 { -value } else { value };
        code += 1;
    }
    table
}

/// Of a normal f32.
const fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// Rounds to a format whose largest finite code is `LARGEST`.
#[inline(always)]
fn round<const MANTISSA: u32, const BIAS: i32, const LARGEST: u32>(value: f32) -> u8 {
    let sign = (value.to_bits() >> 31 << 7) as u8;
    let magnitude = value.abs();
    let least_normal = const { power_of_two(1 - BIAS) };
    let code = if magnitude.is_nan() {
        return CANONICAL_NAN;
    } else if magnitude < least_normal {
        // The sum's last mantissa bit is the format's least subnormal: the addition rounds. A
        // carry gives the least normal number, whose code follows.
        let ulp = const { power_of_two(1 - BIAS - MANTISSA as i32 + 23) };
        (magnitude + ulp).to_bits() - ulp.to_bits()
    } else {
        let dropped = 23 - MANTISSA;
        let bits = magnitude.to_bits();
        let rounded = bits + ((1 << (dropped - 1)) - 1) + (bits >> dropped & 1);
        (rounded >> dropped) - (((127 - BIAS) as u32) << MANTISSA)
    };
    sign | code.min(LARGEST) as u8
}

const CANONICAL_NAN: u8 = 0x7f;

/// # Safety
///
/// As for [`Element::fold`].
#[inline(always)]
unsafe fn fold(values: &[f32; 256], from: *const u8, acc: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    for (at, a) in acc.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let code = unsafe { from.add(at).read() };
        *a = f(*a, values[code as usize]);
    }
}

/// # Safety
///
/// As for [`Element::store`].
#[inline(always)]
unsafe fn store<const MANTISSA: u32, const BIAS: i32, const LARGEST: u32>(
    acc: &[f32],
    to: *mut u8,
) {
    for (at, a) in acc.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { to.add(at).write(round::<MANTISSA, BIAS, LARGEST>(*a)) };
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use self::tests::by_way_of;
