//! Small integers, another for every call, rank and position, and what becomes of them: computed
//! in integers, of which every dtype holds every result exactly. Fast, and apart from
//! [`reference`](crate::reference), with which a test compares it.

use std::sync::OnceLock;

use crossover_core::call::{CallSig, Dtype, Op, ReduceOp, Split};
use half::{bf16, f16};

use crate::data::Rng;
use crate::reference::fp8;

/// What `rank` gives to this call.
pub fn input(call: &CallSig<'_>, seed: u64, rank: usize, world: usize) -> Vec<u8> {
    let count = match (call.op, call.split) {
        (Op::AllGather, Split::PerRank(counts)) => counts[rank],
        _ => call.count,
    };
    let mut bytes = Vec::with_capacity(count * call.dtype.size());
    given(&mut bytes, call, seed, rank, world, 0..count);
    bytes
}

/// What `rank` is to receive.
pub fn expected(call: &CallSig<'_>, seed: u64, rank: usize, world: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let from = |bytes: &mut Vec<u8>, rank, elements| {
        given(bytes, call, seed, rank, world, elements);
    };
    match (call.op, call.split) {
        (Op::AllReduce, _) => reduced(&mut bytes, call, seed, world, 0..call.count),
        (Op::ReduceScatter, Split::Even) => {
            let part = call.count / world;
            reduced(&mut bytes, call, seed, world, rank * part..(rank + 1) * part);
        }
        (Op::ReduceScatter, Split::PerRank(counts)) => {
            let start = counts[..rank].iter().sum();
            reduced(&mut bytes, call, seed, world, start..start + counts[rank]);
        }
        (Op::AllGather, Split::Even) => {
            (0..world).for_each(|peer| from(&mut bytes, peer, 0..call.count));
        }
        (Op::AllGather, Split::PerRank(counts)) => {
            (0..world).for_each(|peer| from(&mut bytes, peer, 0..counts[peer]));
        }
        (Op::Broadcast, _) => from(&mut bytes, call.root as usize, 0..call.count),
        (Op::AllToAll, _) => {
            let part = call.count / world;
            (0..world).for_each(|peer| from(&mut bytes, peer, rank * part..(rank + 1) * part));
        }
    }
    bytes
}

/// Some elements of one rank's input.
fn given(
    bytes: &mut Vec<u8>,
    call: &CallSig<'_>,
    seed: u64,
    rank: usize,
    world: usize,
    elements: std::ops::Range<usize>,
) {
    let key = key(seed, rank);
    if call.op.reduces() {
        let values = Values::of(call, world);
        let encode = Encoding::of(call.dtype);
        elements.for_each(|at| encode.push(bytes, values.value(bits(key, at))));
    } else {
        // Any pattern: copies keep it.
        let size = call.dtype.size();
        let (start, end) = (elements.start * size, elements.end * size);
        let from = bytes.len();
        (start / 8..end.div_ceil(8)).for_each(|at| bytes.extend(bits(key, at).to_ne_bytes()));
        bytes.drain(from..from + start % 8);
        bytes.truncate(from + end - start);
    }
}

fn reduced(
    bytes: &mut Vec<u8>,
    call: &CallSig<'_>,
    seed: u64,
    world: usize,
    elements: std::ops::Range<usize>,
) {
    let values = Values::of(call, world);
    let encode = Encoding::of(call.dtype);
    let keys: Vec<u64> = (0..world).map(|rank| key(seed, rank)).collect();
    for at in elements {
        let of_ranks = keys.iter().map(|key| values.value(bits(*key, at)));
        let result = match call.reduce_op {
            ReduceOp::Sum => of_ranks.sum(),
            ReduceOp::Prod => of_ranks.product(),
            ReduceOp::Min => of_ranks.min().unwrap_or(0),
            ReduceOp::Max => of_ranks.max().unwrap_or(0),
            ReduceOp::Avg => of_ranks.sum::<i64>() / world as i64,
        };
        encode.push(bytes, result);
    }
}

fn key(seed: u64, rank: usize) -> u64 {
    Rng::new(seed, rank as u32).next()
}

/// A number for this position that tells little about that of the next.
fn bits(key: u64, at: usize) -> u64 {
    let x = (key ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(32)
}

/// `low, low + step, ..`, `many` of them.
struct Values {
    low: i64,
    step: i64,
    many: u64,
}

impl Values {
    /// So many that the results of six ranks are exact.
    fn of(call: &CallSig<'_>, world: usize) -> Self {
        let signed = !matches!(call.dtype, Dtype::U8 | Dtype::U32 | Dtype::U64);
        let around = |radius: i64, step: i64| match signed {
            true => Values { low: -radius * step, step, many: 2 * radius as u64 + 1 },
            false => Values { low: 0, step, many: radius as u64 + 1 },
        };
        let radius = match call.dtype {
            // Integers up to 8 are exact in the narrower of the two.
            Dtype::F8E4M3 | Dtype::F8E5M2 => 1,
            // 6 * 20 is less than 128, 256 and 2048.
            Dtype::I8 | Dtype::U8 | Dtype::Bf16 | Dtype::F16 => 20,
            _ => 100_000,
        };
        match call.reduce_op {
            // -1 and 2, or 1 and 2: up to 64.
            ReduceOp::Prod if signed => Values { low: -1, step: 3, many: 2 },
            ReduceOp::Prod => Values { low: 1, step: 1, many: 2 },
            // Multiples of the world: the average is an integer, and 3 * 6 * 6 is less than 128.
            ReduceOp::Avg => around(radius.min(3), world as i64),
            _ => around(radius, 1),
        }
    }

    fn value(&self, bits: u64) -> i64 {
        let which = (u128::from(bits) * u128::from(self.many)) >> 64;
        self.low + self.step * which as i64
    }
}

/// How a dtype writes a small integer.
enum Encoding {
    F32,
    F64,
    /// In two's complement.
    Byte,
    Word,
    Long,
    /// From a list, of -128 and up.
    Listed(Vec<u8>),
    ListedHalf(Vec<[u8; 2]>),
}

impl Encoding {
    fn of(dtype: Dtype) -> Self {
        let halves = |encode: &dyn Fn(f64) -> [u8; 2]| {
            Encoding::ListedHalf(LISTED.map(|x| encode(x.into())).collect())
        };
        match dtype {
            Dtype::F32 => Encoding::F32,
            Dtype::F64 => Encoding::F64,
            Dtype::F16 => halves(&|x| f16::from_f64(x).to_ne_bytes()),
            Dtype::Bf16 => halves(&|x| bf16::from_f64(x).to_ne_bytes()),
            Dtype::F8E4M3 => fp8_list(&E4M3, &fp8::E4M3),
            Dtype::F8E5M2 => fp8_list(&E5M2, &fp8::E5M2),
            Dtype::I8 | Dtype::U8 => Encoding::Byte,
            Dtype::I32 | Dtype::U32 => Encoding::Word,
            Dtype::I64 | Dtype::U64 => Encoding::Long,
        }
    }

    fn push(&self, bytes: &mut Vec<u8>, value: i64) {
        match self {
            Encoding::F32 => bytes.extend_from_slice(&(value as f32).to_ne_bytes()),
            Encoding::F64 => bytes.extend_from_slice(&(value as f64).to_ne_bytes()),
            Encoding::Byte => bytes.push(value as u8),
            Encoding::Word => bytes.extend_from_slice(&(value as u32).to_ne_bytes()),
            Encoding::Long => bytes.extend_from_slice(&value.to_ne_bytes()),
            Encoding::Listed(list) => bytes.push(list[(value + 128) as usize]),
            Encoding::ListedHalf(list) => {
                bytes.extend_from_slice(&list[(value + 128) as usize]);
            }
        }
    }
}

const LISTED: std::ops::RangeInclusive<i32> = -128..=255;
static E4M3: OnceLock<Vec<u8>> = OnceLock::new();
static E5M2: OnceLock<Vec<u8>> = OnceLock::new();

/// Looking for the nearest of all codes takes a while: once a format.
fn fp8_list(list: &OnceLock<Vec<u8>>, format: &fp8::Fp8) -> Encoding {
    let make = || LISTED.map(|x| format.encode(x.into())).collect();
    Encoding::Listed(list.get_or_init(make).clone())
}
