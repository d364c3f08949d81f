//! One size of one collective on one rank: how many elements go in and come out, and what
//! nccl-tests calls its size and its count.

use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::{Contract, Deviation, Deviations};

/// The rank whose tensor a broadcast sends.
pub(super) const ROOT: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) op: Op,
    pub(super) dtype: Dtype,
    pub(super) reduce_op: ReduceOp,
    pub(super) mode: Mode,
    /// A -0.0 may come out as 0.0.
    pub(super) flushes: bool,
    pub(super) rank: u32,
    pub(super) world: u32,
    /// Elements of this rank's input.
    pub(super) input: usize,
    /// Elements of this rank's output.
    pub(super) output: usize,
}

impl Case {
    /// The greatest case whose size is not beyond `size`: the larger of input and output, in whole
    /// elements for every rank.
    pub(super) fn new(
        op: Op,
        dtype: Dtype,
        reduce_op: ReduceOp,
        (rank, world): (u32, u32),
        size: u64,
    ) -> Case {
        let elements = size as usize / dtype.size();
        let part = elements / world as usize;
        let whole = part * world as usize;
        let (input, output) = match op {
            Op::AllReduce | Op::Broadcast => (elements, elements),
            Op::AllGather => (part, whole),
            Op::ReduceScatter => (whole, part),
            Op::AllToAll => (whole, whole),
        };
        let (mode, flushes) = (Mode::Eager, false);
        Case { op, dtype, reduce_op, mode, flushes, rank, world, input, output }
    }

    /// The same in this mode; a new case is eager.
    pub(super) fn mode(self, mode: Mode) -> Case {
        Case { mode, ..self }
    }

    /// The same with the deviations that a contract accepts; a new case accepts none.
    pub(super) fn accepting(self, accept: Deviations) -> Case {
        let whole = matches!(
            self.dtype,
            Dtype::I8 | Dtype::U8 | Dtype::I32 | Dtype::U32 | Dtype::I64 | Dtype::U64
        );
        let flushes = !whole && accept.contains(Deviation::SignedZeroFlush);
        Case { flushes, ..self }
    }

    /// The call that every rank makes.
    pub(super) fn signature(&self, contract: Contract) -> CallSig<'static> {
        CallSig {
            op: self.op,
            dtype: self.dtype,
            reduce_op: self.reduce_op,
            count: self.input,
            mode: self.mode,
            root: ROOT,
            split: Split::Even,
            contract,
        }
    }

    /// nccl-tests' `size`: bytes of the larger of input and output.
    pub(super) fn size(&self) -> u64 {
        (self.input.max(self.output) * self.dtype.size()) as u64
    }

    /// nccl-tests' `count`: elements of one rank's part, where the op splits the tensor.
    pub(super) fn count(&self) -> usize {
        match self.op {
            Op::AllToAll => self.input / self.world as usize,
            _ => self.input.min(self.output),
        }
    }

    /// Input bytes per rank, what policies call the size of a call.
    pub(super) fn input_bytes(&self) -> u64 {
        (self.input * self.dtype.size()) as u64
    }

    /// Where the input starts in the one buffer of a call in place, in elements.
    pub(super) fn input_in_place(&self) -> usize {
        if self.op == Op::AllGather { self.rank as usize * self.input } else { 0 }
    }

    /// Where the output starts in the one buffer of a call in place, in elements.
    pub(super) fn output_in_place(&self) -> usize {
        if self.op == Op::ReduceScatter { self.rank as usize * self.output } else { 0 }
    }

    /// Bytes that cross each rank's link for each byte of `size`, by nccl-tests' convention: what
    /// makes bandwidths of different ops and worlds comparable.
    pub(super) fn bus_factor(&self) -> f64 {
        let world = f64::from(self.world);
        match self.op {
            Op::AllReduce => 2.0 * (world - 1.0) / world,
            Op::AllGather | Op::ReduceScatter | Op::AllToAll => (world - 1.0) / world,
            Op::Broadcast => 1.0,
        }
    }

    /// nccl-tests' `redop`.
    pub(super) fn reduce_op_name(&self) -> &'static str {
        if self.op.reduces() { self.reduce_op.name() } else { "none" }
    }

    /// nccl-tests' `root`.
    pub(super) fn root(&self) -> i64 {
        if self.op == Op::Broadcast { i64::from(ROOT) } else { -1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(op: Op, world: u32, size: u64) -> Case {
        Case::new(op, Dtype::F32, ReduceOp::Sum, (world - 1, world), size)
    }

    #[test]
    fn sizes_are_rounded_down_to_whole_elements_of_every_rank() {
        assert_eq!(case(Op::AllReduce, 3, 35).size(), 32);
        for op in [Op::AllGather, Op::ReduceScatter, Op::AllToAll] {
            assert_eq!(case(op, 3, 35).size(), 24);
            assert_eq!(case(op, 3, 35).count(), 2);
            assert_eq!(case(op, 3, 11).size(), 0);
        }
    }

    #[test]
    fn all_gather_counts_its_output() {
        let case = case(Op::AllGather, 4, 64);
        assert_eq!((case.input, case.output), (4, 16));
        assert_eq!((case.size(), case.input_bytes()), (64, 16));
        assert_eq!((case.input_in_place(), case.output_in_place()), (12, 0));
    }

    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        let factor = |op| case(op, 4, 64).bus_factor();
        assert_eq!(factor(Op::AllReduce), 1.5);
        assert_eq!(factor(Op::AllGather), 0.75);
        assert_eq!(factor(Op::ReduceScatter), 0.75);
        assert_eq!(factor(Op::AllToAll), 0.75);
        assert_eq!(factor(Op::Broadcast), 1.0);
    }
}
