//! Small whole numbers as elements of any type.

use crossover_core::call::Dtype;
use half::{bf16, f16};

/// The greatest number that is ever written.
pub(super) const GREATEST: i32 = 256;

/// The bytes of every number from `-GREATEST` to `GREATEST`, looked up rather than converted: a
/// check goes over each element of each rank.
pub(super) struct Encoder {
    size: usize,
    bytes: Vec<[u8; 8]>,
}

impl Encoder {
    pub(super) fn new(dtype: Dtype) -> Encoder {
        let bytes = (-GREATEST..=GREATEST).map(|value| encode(dtype, value)).collect();
        Encoder { size: dtype.size(), bytes }
    }

    /// Writes as many elements as there is room for.
    pub(super) fn write(&self, values: &[i32], elements: &mut [u8]) {
        match self.size {
            1 => self.write_sized::<1>(values, elements),
            2 => self.write_sized::<2>(values, elements),
            4 => self.write_sized::<4>(values, elements),
            _ => self.write_sized::<8>(values, elements),
        }
    }

    /// With the size known at compile time, copying an element is one move.
    fn write_sized<const SIZE: usize>(&self, values: &[i32], elements: &mut [u8]) {
        let (elements, _) = elements.as_chunks_mut::<SIZE>();
        for (element, value) in elements.iter_mut().zip(values) {
            let [bytes, ..] = self.bytes[(value + GREATEST) as usize].as_chunks::<SIZE>().0 else {
                unreachable!("the bytes of a value have room for any element");
            };
            *element = *bytes;
        }
    }
}

/// The greatest number up to which the type holds every whole number exactly, or [`GREATEST`].
pub(super) fn exact_up_to(dtype: Dtype) -> i32 {
    match dtype {
        Dtype::F8E5M2 => 8,
        Dtype::F8E4M3 => 16,
        Dtype::I8 => 127,
        Dtype::U8 => 255,
        _ => GREATEST,
    }
}

pub(super) fn is_signed(dtype: Dtype) -> bool {
    !matches!(dtype, Dtype::U8 | Dtype::U32 | Dtype::U64)
}

/// The element, in its first bytes.
fn encode(dtype: Dtype, value: i32) -> [u8; 8] {
    let mut bytes = [0; 8];
    let mut put = |element: &[u8]| bytes[..element.len()].copy_from_slice(element);
    match dtype {
        Dtype::F32 => put(&(value as f32).to_ne_bytes()),
        Dtype::F16 => put(&f16::from_f32(value as f32).to_ne_bytes()),
        Dtype::Bf16 => put(&bf16::from_f32(value as f32).to_ne_bytes()),
        Dtype::F64 => put(&f64::from(value).to_ne_bytes()),
        Dtype::I8 => put(&(value as i8).to_ne_bytes()),
        Dtype::U8 => put(&(value as u8).to_ne_bytes()),
        Dtype::I32 => put(&value.to_ne_bytes()),
        Dtype::U32 => put(&(value as u32).to_ne_bytes()),
        Dtype::I64 => put(&i64::from(value).to_ne_bytes()),
        Dtype::U64 => put(&(value as u64).to_ne_bytes()),
        Dtype::F8E4M3 => put(&[minifloat(value, 3, 7)]),
        Dtype::F8E5M2 => put(&[minifloat(value, 2, 15)]),
    }
    bytes
}

/// An 8-bit float: sign, exponent with this bias, mantissa of so many bits. Truncates what the
/// mantissa does not hold.
fn minifloat(value: i32, mantissa_bits: u32, bias: u32) -> u8 {
    let sign = if value < 0 { 0x80 } else { 0 };
    let magnitude = value.unsigned_abs();
    let Some(exponent) = magnitude.checked_ilog2() else { return sign };
    let mantissa =
        ((magnitude << 8) >> (exponent + 8 - mantissa_bits)) & ((1 << mantissa_bits) - 1);
    sign | ((exponent + bias) << mantissa_bits) as u8 | mantissa as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minifloats_are_those_of_the_ocp_specification() {
        let e4m3 = |value| encode(Dtype::F8E4M3, value)[0];
        assert_eq!((e4m3(0), e4m3(1), e4m3(-1)), (0x00, 0x38, 0xb8));
        assert_eq!((e4m3(2), e4m3(3), e4m3(15), e4m3(16)), (0x40, 0x44, 0x57, 0x58));
        let e5m2 = |value| encode(Dtype::F8E5M2, value)[0];
        assert_eq!((e5m2(0), e5m2(1), e5m2(-1)), (0x00, 0x3c, 0xbc));
        assert_eq!((e5m2(2), e5m2(3), e5m2(7), e5m2(8)), (0x40, 0x42, 0x47, 0x48));
    }

    #[test]
    fn whole_numbers_are_exact_as_far_as_is_said() {
        for &dtype in Dtype::ALL {
            let exact = exact_up_to(dtype);
            let mut all: Vec<[u8; 8]> = (0..=exact).map(|value| encode(dtype, value)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len() as i32, exact + 1, "{dtype}");
        }
    }
}
