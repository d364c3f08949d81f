//! What is measured: ops, element types, and how many elements a size is.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Op {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
}

impl Op {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Op::AllReduce => "all_reduce",
            Op::AllGather => "all_gather",
            Op::ReduceScatter => "reduce_scatter",
            Op::Broadcast => "broadcast",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Dtype {
    F32,
    Bf16,
}

impl Dtype {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::Bf16 => "bf16",
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::Bf16 => 2,
        }
    }
}

/// One cell of the table, for one number of ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) op: Op,
    pub(crate) dtype: Dtype,
    pub(crate) world: usize,
    /// As asked for: input bytes of a rank.
    pub(crate) bytes: usize,
}

impl Cell {
    /// Elements of a rank's input. The smallest sizes are rounded up to one element for each rank
    /// where the op deals elements out.
    pub(crate) fn input(&self) -> usize {
        let elements = self.bytes / self.dtype.size();
        match self.op {
            Op::ReduceScatter => elements.next_multiple_of(self.world),
            _ => elements,
        }
    }

    /// Elements of a rank's output.
    pub(crate) fn output(&self) -> usize {
        match self.op {
            Op::AllReduce | Op::Broadcast => self.input(),
            Op::AllGather => self.input() * self.world,
            Op::ReduceScatter => self.input() / self.world,
        }
    }
}
