//! Floats of a narrower exponent than f32's: there and back, by operations that every vector has.

/// A format of a sign, an exponent and a mantissa, at most 16 bits in all.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// Bits of the mantissa.
    pub(super) mantissa: u32,
    pub(super) bias: u32,
    /// What is too large becomes this code.
    pub(super) largest: u32,
    /// Magnitudes from this code on are infinite or NaN, their mantissa nonzero if NaN.
    pub(super) special: u32,
    /// The canonical NaN.
    pub(super) nan: u32,
}

impl Format {
    /// The bits of the f32 that has the value of a code of `width` bits.
    // No subnormal f32 is an operand, since these cost hundreds of cycles.
    #[inline(always)]
    pub(super) fn widen(self, code: u32, width: u32) -> u32 {
        let sign = code >> (width - 1) << 31;
        let magnitude = code & ((1 << (width - 1)) - 1);
        let fields = magnitude << (23 - self.mantissa);
        let normal = fields + ((127 - self.bias) << 23);
        // The mantissa behind the implicit bit of the least normal number, which is taken off.
        let least_normal = (128 - self.bias) << 23;
        let subnormal = f32::from_bits(fields + least_normal) - f32::from_bits(least_normal);
        let finite = select(magnitude < 1 << self.mantissa, subnormal.to_bits(), normal);
        sign | select(magnitude >= self.special, normal | 0x7f80_0000, finite)
    }

    /// The code nearest to an f32 of these bits, ties to even.
    #[inline(always)]
    pub(super) fn narrow(self, bits: u32, width: u32) -> u32 {
        let sign = bits >> 31 << (width - 1);
        let magnitude = bits & 0x7fff_ffff;
        // The sum's last mantissa bit is the format's least subnormal: the addition rounds. A
        // carry gives the least normal number, whose code follows.
        let ulp = (127 + 24 - self.bias - self.mantissa) << 23;
        let sum = f32::from_bits(magnitude) + f32::from_bits(ulp);
        let subnormal = sum.to_bits().wrapping_sub(ulp);
        let dropped = 23 - self.mantissa;
        let half = (1 << (dropped - 1)) - 1;
        let rounded = magnitude.wrapping_add(half + (magnitude >> dropped & 1)) >> dropped;
        let normal = rounded.wrapping_sub((127 - self.bias) << self.mantissa);
        let code = select(magnitude < (128 - self.bias) << 23, subnormal, normal);
        select(magnitude > 0x7f80_0000, self.nan, sign | code.min(self.largest))
    }
}

/// One or the other without a branch: compilers make vector code of it.
#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    let mask = u32::from(condition).wrapping_neg();
    yes & mask | no & !mask
}
