//! The OCP 8-bit floats by their definition: decode by formula, encode by looking for the nearest
//! of all 256 values. Slow, and independent of any bit trick.

/// One of the two formats (OCP 8-bit Floating Point Specification, revision 1.0).
pub struct Fp8 {
    exponent_bits: u32,
    mantissa_bits: u32,
    /// E4M3 gives up infinities for one more binade.
    infinities: bool,
}

/// Four bits of exponent, bias 7, no infinity, largest 448.
pub const E4M3: Fp8 = Fp8 { exponent_bits: 4, mantissa_bits: 3, infinities: false };
/// Five bits of exponent, bias 15, infinities, largest finite 57344.
pub const E5M2: Fp8 = Fp8 { exponent_bits: 5, mantissa_bits: 2, infinities: true };

impl Fp8 {
    /// The value of a code.
    pub fn decode(&self, code: u8) -> f64 {
        let sign = if code & 0x80 != 0 { -1.0 } else { 1.0 };
        let exponent = u32::from(code & 0x7f) >> self.mantissa_bits;
        let mantissa = u32::from(code) & ((1 << self.mantissa_bits) - 1);
        let top = (1 << self.exponent_bits) - 1;
        let bias = (1 << (self.exponent_bits - 1)) - 1;
        let scale = f64::from(1 << self.mantissa_bits);
        if exponent == top && self.infinities {
            return if mantissa == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        if exponent == top && mantissa == (1 << self.mantissa_bits) - 1 {
            return f64::NAN;
        }
        match exponent {
            0 => sign * f64::from(mantissa) / scale * 2f64.powi(1 - bias),
            e => sign * (1.0 + f64::from(mantissa) / scale) * 2f64.powi(e as i32 - bias),
        }
    }

    /// The nearest code, ties to even, beyond the largest finite value that one; NaN is NaN.
    pub fn encode(&self, value: f64) -> u8 {
        if value.is_nan() {
            return 0x7f;
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let finite = (0..0x7fu8).filter(|c| self.decode(*c).is_finite());
        let distance = |code: u8| (self.decode(code) - value.abs().min(1e9)).abs();
        let nearest = finite
            .min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1))))
            .expect("every format has a zero");
        sign | nearest
    }
}
