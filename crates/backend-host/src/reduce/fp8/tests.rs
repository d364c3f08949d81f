//! Against an independent model: the format's finite values as f64, and a search for the nearest.

use super::*;

struct Format {
    mantissa: i32,
    bias: i32,
    largest: u8,
    decode: &'static [f32; 256],
    encode: fn(f32) -> u8,
}

const FORMATS: [Format; 2] = [
    Format {
        mantissa: 3,
        bias: 7,
        largest: 0x7e,
        decode: &E4M3_VALUES,
        encode: round::<3, 7, 0x7e>,
    },
    Format {
        mantissa: 2,
        bias: 15,
        largest: 0x7b,
        decode: &E5M2_VALUES,
        encode: round::<2, 15, 0x7b>,
    },
];

impl Format {
    /// The value of a finite, positive code, by the formula of the specification.
    fn value(&self, code: u8) -> f64 {
        let steps = f64::from(1 << self.mantissa);
        let fraction = f64::from(i32::from(code) % (1 << self.mantissa)) / steps;
        match i32::from(code) >> self.mantissa {
            0 => fraction * 2f64.powi(1 - self.bias),
            exponent => (1.0 + fraction) * 2f64.powi(exponent - self.bias),
        }
    }

    /// The nearest code, ties to even, saturating.
    fn nearest(&self, value: f64) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let value = value.abs();
        if value.is_nan() {
            return 0x7f;
        }
        let above = (0..=self.largest).find(|code| self.value(*code) >= value);
        let code = match above {
            None => self.largest,
            Some(0) => 0,
            Some(above) => {
                let (low, high) = (self.value(above - 1), self.value(above));
                match (value - low).partial_cmp(&(high - value)).unwrap() {
                    std::cmp::Ordering::Less => above - 1,
                    std::cmp::Ordering::Greater => above,
                    std::cmp::Ordering::Equal => above & !1,
                }
            }
        };
        sign | code
    }
}

#[test]
fn every_code_has_its_value() {
    for format in &FORMATS {
        for code in 0..=255u8 {
            let (magnitude, decoded) = (code & 0x7f, f64::from(format.decode[code as usize]));
            if magnitude <= format.largest {
                let sign = if code < 0x80 { 1.0 } else { -1.0 };
                assert_eq!(decoded.to_bits(), (sign * format.value(magnitude)).to_bits());
                assert_eq!((format.encode)(decoded as f32), code, "there and back");
            }
        }
    }
    assert!(E4M3_VALUES[0x7f].is_nan() && E4M3_VALUES[0xff].is_nan());
    assert_eq!(E4M3_VALUES[0x7e], 448.0);
    assert_eq!((E5M2_VALUES[0x7b], E5M2_VALUES[0x7c]), (57344.0, f32::INFINITY));
    assert_eq!(E5M2_VALUES[0xfc], f32::NEG_INFINITY);
    for nan in [0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff] {
        assert!(E5M2_VALUES[nan].is_nan());
    }
}

#[test]
fn every_half_rounds_to_the_nearest() {
    for bits in 0..=u16::MAX {
        let value = half::f16::from_bits(bits).to_f32();
        for format in &FORMATS {
            let (got, expected) = ((format.encode)(value), format.nearest(value.into()));
            assert_eq!(got, expected, "{value:e}, mantissa of {}", format.mantissa);
        }
    }
}

#[test]
fn every_tie_and_its_neighbours_round_to_the_nearest() {
    for format in &FORMATS {
        for code in 0..format.largest {
            let tie = ((format.value(code) + format.value(code + 1)) / 2.0) as f32;
            for value in [tie.next_down(), tie, tie.next_up()] {
                assert_eq!((format.encode)(value), format.nearest(value.into()), "{value:e}");
                assert_eq!((format.encode)(-value), format.nearest((-value).into()), "-{value:e}");
            }
        }
        for value in [f32::MIN_POSITIVE, 1e-45, f32::MAX, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!((format.encode)(value), format.nearest(value.into()), "{value:e}");
        }
    }
}

/// Decodes, applies `f`, encodes.
pub(crate) fn by_way_of<E: Element<Acc = f32>>(codes: &[u8], f: impl Fn(&[f32]) -> f32) -> u8 {
    let mut values = vec![0.0; codes.len()];
    let mut code = 0;
    // SAFETY: as many codes as values, and one of each.
    unsafe {
        E::fold(codes.as_ptr(), &mut values, |_, value| value);
        E::store(&[f(&values)], &mut code);
    }
    code
}
