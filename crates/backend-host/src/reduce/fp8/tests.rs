//! Against an independent model: the format's finite values as f64, and a search for the nearest.

use super::*;

struct Model {
    mantissa: i32,
    bias: i32,
    largest: u8,
    format: Format,
}

const MODELS: [Model; 2] = [
    Model { mantissa: 3, bias: 7, largest: 0x7e, format: E4M3_FORMAT },
    Model { mantissa: 2, bias: 15, largest: 0x7b, format: E5M2_FORMAT },
];

impl Model {
    fn decode(&self, code: u8) -> f32 {
        f32::from_bits(self.format.widen(code.into(), 8))
    }

    fn encode(&self, value: f32) -> u8 {
        self.format.narrow(value.to_bits(), 8) as u8
    }

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
    for model in &MODELS {
        for code in 0..=255u8 {
            let (magnitude, decoded) = (code & 0x7f, f64::from(model.decode(code)));
            if magnitude <= model.largest {
                let sign = if code < 0x80 { 1.0 } else { -1.0 };
                assert_eq!(decoded.to_bits(), (sign * model.value(magnitude)).to_bits());
                assert_eq!(model.encode(decoded as f32), code, "there and back");
            }
        }
    }
    let [e4m3, e5m2] = &MODELS;
    assert!(e4m3.decode(0x7f).is_nan() && e4m3.decode(0xff).is_nan());
    assert_eq!(e4m3.decode(0x7e), 448.0);
    assert_eq!((e5m2.decode(0x7b), e5m2.decode(0x7c)), (57344.0, f32::INFINITY));
    assert_eq!(e5m2.decode(0xfc), f32::NEG_INFINITY);
    for nan in [0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff] {
        assert!(e5m2.decode(nan).is_nan());
    }
}

#[test]
fn every_half_rounds_to_the_nearest() {
    for bits in 0..=u16::MAX {
        let value = half::f16::from_bits(bits).to_f32();
        for model in &MODELS {
            let (got, expected) = (model.encode(value), model.nearest(value.into()));
            assert_eq!(got, expected, "{value:e}, mantissa of {}", model.mantissa);
        }
    }
}

#[test]
fn every_tie_and_its_neighbours_round_to_the_nearest() {
    for model in &MODELS {
        for code in 0..model.largest {
            let tie = ((model.value(code) + model.value(code + 1)) / 2.0) as f32;
            for value in [tie.next_down(), tie, tie.next_up()] {
                assert_eq!(model.encode(value), model.nearest(value.into()), "{value:e}");
                assert_eq!(model.encode(-value), model.nearest((-value).into()), "-{value:e}");
            }
        }
        for value in [f32::MIN_POSITIVE, 1e-45, f32::MAX, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(model.encode(value), model.nearest(value.into()), "{value:e}");
        }
    }
}

/// Decodes, applies `f`, encodes.
fn by_way_of(format: Format, codes: &[u8], f: impl Fn(&[f32]) -> f32) -> u8 {
    let value = |code: &u8| f32::from_bits(format.widen((*code).into(), 8));
    let values: Vec<f32> = codes.iter().map(value).collect();
    format.narrow(f(&values).to_bits(), 8) as u8
}

pub(crate) fn e4m3(codes: &[u8], f: impl Fn(&[f32]) -> f32) -> u8 {
    by_way_of(E4M3_FORMAT, codes, f)
}

pub(crate) fn e5m2(codes: &[u8], f: impl Fn(&[f32]) -> f32) -> u8 {
    by_way_of(E5M2_FORMAT, codes, f)
}
