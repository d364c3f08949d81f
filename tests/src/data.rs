//! Data that differs for every rank, call and position, as bytes of any dtype.

use crossover_core::call::{Dtype, ReduceOp};
use half::{bf16, f16};

use crate::reference::fp8;

/// A small generator (SplitMix64, Steele et al. 2014): the same numbers from the same seed.
#[derive(Clone)]
pub struct Rng(pub u64);

impl Rng {
    /// A generator for one rank of one call.
    pub fn new(seed: u64, rank: u32) -> Self {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(rank) << 32);
        rng.next();
        rng
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "not an iterator: it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Which values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Integers so small that every sum and product of 16 ranks is exact in the dtype: a rank that
    /// is dropped, doubled or late shows, which a tolerance would hide.
    Exact,
    /// Any bit pattern: NaN payloads, infinities, subnormals, -0.0. For copies, which must keep
    /// them all.
    Bits,
    /// Numbers of many magnitudes, whose sum depends on the order of addition.
    Rough,
}

/// `count` elements of one rank, in native byte order.
pub fn fill(
    values: Values,
    dtype: Dtype,
    reduce_op: ReduceOp,
    rng: &mut Rng,
    count: usize,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * dtype.size());
    for _ in 0..count {
        match values {
            Values::Exact => push(&mut bytes, dtype, exact(dtype, reduce_op, rng)),
            Values::Bits => bytes.extend_from_slice(&rng.next().to_ne_bytes()[..dtype.size()]),
            Values::Rough => push(&mut bytes, dtype, rough(rng)),
        }
    }
    bytes
}

/// An integer whose reductions are exact: products stay below 2^3 in narrow floats.
fn exact(dtype: Dtype, reduce_op: ReduceOp, rng: &mut Rng) -> f64 {
    let unsigned = matches!(dtype, Dtype::U8 | Dtype::U32 | Dtype::U64);
    match (reduce_op, dtype) {
        // Powers of two with few ups: at most one rank in five doubles.
        (ReduceOp::Prod, _) => [1.0, 1.0, 1.0, 1.0, 2.0][rng.below(5) as usize],
        // E5M2 has two bits of mantissa, E4M3 three: sums of 16 ranks up to 4 and 16 are exact.
        (_, Dtype::F8E5M2) => [0.0, 0.0, 0.0, 0.0, 1.0, -1.0][rng.below(6) as usize],
        (_, Dtype::F8E4M3) => rng.below(3) as f64 - 1.0,
        _ if unsigned => rng.below(8) as f64,
        _ => rng.below(17) as f64 - 8.0,
    }
}

fn rough(rng: &mut Rng) -> f64 {
    let mantissa = rng.below(1 << 20) as f64 / (1 << 19) as f64 - 1.0;
    mantissa * 2f64.powi(rng.below(12) as i32 - 4)
}

fn push(bytes: &mut Vec<u8>, dtype: Dtype, value: f64) {
    match dtype {
        Dtype::F32 => bytes.extend_from_slice(&(value as f32).to_ne_bytes()),
        Dtype::F16 => bytes.extend_from_slice(&f16::from_f64(value).to_ne_bytes()),
        Dtype::Bf16 => bytes.extend_from_slice(&bf16::from_f64(value).to_ne_bytes()),
        Dtype::F64 => bytes.extend_from_slice(&value.to_ne_bytes()),
        Dtype::I8 => bytes.extend_from_slice(&(value as i8).to_ne_bytes()),
        Dtype::U8 => bytes.push(value as i64 as u8),
        Dtype::I32 => bytes.extend_from_slice(&(value as i32).to_ne_bytes()),
        Dtype::U32 => bytes.extend_from_slice(&(value as i64 as u32).to_ne_bytes()),
        Dtype::I64 => bytes.extend_from_slice(&(value as i64).to_ne_bytes()),
        Dtype::U64 => bytes.extend_from_slice(&(value as i64 as u64).to_ne_bytes()),
        Dtype::F8E4M3 => bytes.push(fp8::E4M3.encode(value)),
        Dtype::F8E5M2 => bytes.push(fp8::E5M2.encode(value)),
    }
}
