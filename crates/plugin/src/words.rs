//! The words of calls, as numbers. A number keeps its meaning for ever.

use crossover::core::call;

use crate::failure::Failure;

/// Which collective.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Every rank receives the reduction of all inputs.
    AllReduce = 0,
    /// Every rank receives all inputs, in rank order.
    AllGather = 1,
    /// Rank r receives part r of the reduction of all inputs.
    ReduceScatter = 2,
    /// Every rank receives the root's input.
    Broadcast = 3,
    /// Part p of the input goes to rank p.
    AllToAll = 4,
}

/// Element type.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum Dtype {
    /// IEEE 754 binary32.
    F32 = 0,
    /// IEEE 754 binary16; reduced in f32.
    F16 = 1,
    /// bfloat16; reduced in f32.
    Bf16 = 2,
    /// IEEE 754 binary64.
    F64 = 3,
    /// Signed 8 bits, wrapping.
    I8 = 4,
    /// Unsigned 8 bits, wrapping.
    U8 = 5,
    /// Signed 32 bits, wrapping.
    I32 = 6,
    /// Unsigned 32 bits, wrapping.
    U32 = 7,
    /// Signed 64 bits, wrapping.
    I64 = 8,
    /// Unsigned 64 bits, wrapping.
    U64 = 9,
    /// OCP FP8 E4M3; reduced in f32, saturating.
    F8E4M3 = 10,
    /// OCP FP8 E5M2; reduced in f32, saturating.
    F8E5M2 = 11,
}

/// How contributions are combined: over ranks 0, 1, ..., N-1, or as the algorithm states.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum ReduceOp {
    /// Sum.
    Sum = 0,
    /// Product.
    Prod = 1,
    /// Minimum; a NaN in any contribution gives NaN.
    Min = 2,
    /// Maximum; a NaN in any contribution gives NaN.
    Max = 3,
    /// The sum divided by the number of ranks.
    Avg = 4,
}

/// Whether a call runs now or is recorded into a device graph. The engine declares it; no stream is
/// asked.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    /// Runs now.
    Eager = 0,
    /// Recorded, and replayed later any number of times.
    Graph = 1,
}

const OPS: [(Op, call::Op); 5] = [
    (Op::AllReduce, call::Op::AllReduce),
    (Op::AllGather, call::Op::AllGather),
    (Op::ReduceScatter, call::Op::ReduceScatter),
    (Op::Broadcast, call::Op::Broadcast),
    (Op::AllToAll, call::Op::AllToAll),
];

const DTYPES: [(Dtype, call::Dtype); 12] = [
    (Dtype::F32, call::Dtype::F32),
    (Dtype::F16, call::Dtype::F16),
    (Dtype::Bf16, call::Dtype::Bf16),
    (Dtype::F64, call::Dtype::F64),
    (Dtype::I8, call::Dtype::I8),
    (Dtype::U8, call::Dtype::U8),
    (Dtype::I32, call::Dtype::I32),
    (Dtype::U32, call::Dtype::U32),
    (Dtype::I64, call::Dtype::I64),
    (Dtype::U64, call::Dtype::U64),
    (Dtype::F8E4M3, call::Dtype::F8E4M3),
    (Dtype::F8E5M2, call::Dtype::F8E5M2),
];

const REDUCE_OPS: [(ReduceOp, call::ReduceOp); 5] = [
    (ReduceOp::Sum, call::ReduceOp::Sum),
    (ReduceOp::Prod, call::ReduceOp::Prod),
    (ReduceOp::Min, call::ReduceOp::Min),
    (ReduceOp::Max, call::ReduceOp::Max),
    (ReduceOp::Avg, call::ReduceOp::Avg),
];

const MODES: [(Mode, call::Mode); 2] =
    [(Mode::Eager, call::Mode::Eager), (Mode::Graph, call::Mode::Graph)];

pub(crate) fn op(number: u32) -> Result<call::Op, Failure> {
    find(number, &OPS, |word| word as u32, "op")
}

pub(crate) fn dtype(number: u32) -> Result<call::Dtype, Failure> {
    find(number, &DTYPES, |word| word as u32, "dtype")
}

pub(crate) fn reduce_op(number: u32) -> Result<call::ReduceOp, Failure> {
    find(number, &REDUCE_OPS, |word| word as u32, "reduce_op")
}

pub(crate) fn mode(number: u32) -> Result<call::Mode, Failure> {
    find(number, &MODES, |word| word as u32, "mode")
}

fn find<C: Copy, W: Copy>(
    number: u32,
    words: &[(C, W)],
    number_of: fn(C) -> u32,
    kind: &str,
) -> Result<W, Failure> {
    let found = words.iter().find(|(word, _)| number_of(*word) == number);
    found.map(|(_, word)| *word).ok_or_else(|| {
        let last = words.len() - 1;
        Failure::usage(format!("{number} is no {kind}: they go from 0 to {last} in crossover.h"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word of `all` has the number of its place in `words`, and its name there.
    fn check<C: Copy + std::fmt::Debug, W: Copy + PartialEq + std::fmt::Display>(
        words: &[(C, W)],
        all: &[W],
        read: fn(u32) -> Result<W, Failure>,
    ) {
        assert_eq!(words.len(), all.len());
        for (number, (c, word)) in (0..).zip(words) {
            assert!(read(number) == Ok(*word), "{number}");
            let plain = word.to_string().replace('_', "");
            assert_eq!(format!("{c:?}").to_lowercase(), plain);
        }
        assert!(read(words.len() as u32).is_err() && read(u32::MAX).is_err());
    }

    #[test]
    fn every_word_has_its_number_and_its_name() {
        check(&OPS, call::Op::ALL, op);
        check(&DTYPES, call::Dtype::ALL, dtype);
        check(&REDUCE_OPS, call::ReduceOp::ALL, reduce_op);
        check(&MODES, call::Mode::ALL, mode);
    }
}
