//! One collective call, split into what is the same on every rank ([`CallSig`]) and what is not
//! ([`CallBuffers`]).

use crate::contract::Contract;
use crate::digest;
use crate::vocabulary::vocabulary;

vocabulary! { "op",
    /// Which collective.
    pub enum Op in Ops {
        /// Every rank gives a tensor, every rank receives the reduction of all.
        AllReduce = "all_reduce",
        /// Every rank gives a part, every rank receives all parts in rank order.
        AllGather = "all_gather",
        /// Every rank gives a tensor, rank r receives part r of the reduction.
        ReduceScatter = "reduce_scatter",
        /// The root gives a tensor, every rank receives it.
        Broadcast = "broadcast",
        /// Every rank gives one part to each rank, and receives one from each, in rank order.
        AllToAll = "all_to_all",
    }
}

impl Op {
    /// Does it add contributions up? Otherwise it only copies, and is bit-exact.
    pub const fn reduces(self) -> bool {
        matches!(self, Op::AllReduce | Op::ReduceScatter)
    }

    /// Output bytes per rank, from input bytes per rank.
    pub const fn output_bytes(self, input: u64, world: u32) -> u64 {
        match self {
            Op::AllGather => input.saturating_mul(world as u64),
            Op::ReduceScatter => input / world as u64,
            Op::AllReduce | Op::Broadcast | Op::AllToAll => input,
        }
    }
}

vocabulary! { "dtype",
    /// Element type.
    pub enum Dtype in Dtypes {
        /// IEEE 754 binary32.
        F32 = "f32",
        /// IEEE 754 binary16; reduced in f32.
        F16 = "f16",
        /// bfloat16; reduced in f32.
        Bf16 = "bf16",
        /// IEEE 754 binary64.
        F64 = "f64",
        /// Signed 8 bits, wrapping.
        I8 = "i8",
        /// Unsigned 8 bits, wrapping.
        U8 = "u8",
        /// Signed 32 bits, wrapping.
        I32 = "i32",
        /// Unsigned 32 bits, wrapping.
        U32 = "u32",
        /// Signed 64 bits, wrapping.
        I64 = "i64",
        /// Unsigned 64 bits, wrapping.
        U64 = "u64",
        /// OCP FP8 E4M3 (no infinity, NaN is S.1111.111); reduced in f32, saturating.
        F8E4M3 = "f8e4m3",
        /// OCP FP8 E5M2; reduced in f32, saturating.
        F8E5M2 = "f8e5m2",
    }
}

impl Dtype {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Dtype::I8 | Dtype::U8 | Dtype::F8E4M3 | Dtype::F8E5M2 => 1,
            Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
            Dtype::F64 | Dtype::I64 | Dtype::U64 => 8,
        }
    }
}

vocabulary! { "reduce op",
    /// How contributions are combined. The order is stated by the algorithm
    /// ([`OrderClass`](crate::contract::OrderClass)).
    pub enum ReduceOp in ReduceOps {
        /// Sum.
        Sum = "sum",
        /// Product.
        Prod = "prod",
        /// Minimum; a NaN in any contribution gives NaN.
        Min = "min",
        /// Maximum; a NaN in any contribution gives NaN.
        Max = "max",
        /// The sum divided by the number of ranks; integers truncate toward zero.
        Avg = "avg",
    }
}

vocabulary! { "mode",
    /// Whether the call runs now or is recorded into a device graph. The engine declares it; it is
    /// never probed from a stream.
    pub enum Mode in Modes {
        /// Runs now.
        Eager = "eager",
        /// Recorded, and replayed later any number of times.
        Graph = "graph",
    }
}

/// How the tensor splits over ranks, where the op splits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split<'a> {
    /// Every rank has the same share.
    Even,
    /// Elements of each rank, in rank order (`all_gather_v`, `reduce_scatter_v`). A zero is legal.
    PerRank(&'a [usize]),
}

impl Split<'_> {
    /// What ranks compare of it: 0 of an even one, of another a digest of its counts, which is never 0.
    #[inline]
    pub fn digest(&self) -> u64 {
        match self {
            Split::Even => 0,
            Split::PerRank(counts) => digest::of_counts(counts),
        }
    }
}

/// The rank-invariant description of a call. **Everything that selection may look at is here, and
/// nothing here may differ between ranks**: no pointer, no stream, no timing, no free memory.
///
/// The group is not in it: a signature is given to one group's communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallSig<'a> {
    /// Which collective.
    pub op: Op,
    /// Element type.
    pub dtype: Dtype,
    /// How contributions are combined; ignored by ops that only copy.
    pub reduce_op: ReduceOp,
    /// Elements of one rank's input: the whole tensor for `all_reduce`, `broadcast`,
    /// `reduce_scatter` and `all_to_all`, one rank's part for `all_gather`. With
    /// [`Split::PerRank`], the sum of the parts for `reduce_scatter` and the largest part for
    /// `all_gather`, so that equal parts are planned exactly as the even call is.
    pub count: usize,
    /// Now or recorded.
    pub mode: Mode,
    /// The rank whose tensor a `broadcast` sends; 0 for other ops.
    pub root: u32,
    /// Even, or elements per rank.
    pub split: Split<'a>,
    /// What the caller demands of, and accepts in, the result.
    pub contract: Contract,
}

/// What kind of call it is: all that a policy's keys and an algorithm's clauses are about, but for
/// the number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKind {
    /// Which collective.
    pub op: Op,
    /// Element type.
    pub dtype: Dtype,
    /// How contributions are combined.
    pub reduce_op: ReduceOp,
    /// Now or recorded.
    pub mode: Mode,
    /// What the caller demands and accepts.
    pub contract: Contract,
}

impl CallSig<'_> {
    /// Its kind.
    pub const fn kind(&self) -> CallKind {
        CallKind {
            op: self.op,
            dtype: self.dtype,
            reduce_op: self.reduce_op,
            mode: self.mode,
            contract: self.contract,
        }
    }

    /// Input bytes per rank: the basis of every byte range in a policy. Saturates.
    pub const fn bytes(&self) -> u64 {
        (self.count as u64).saturating_mul(self.dtype.size() as u64)
    }
}

/// The per-rank half of a call. Only [`Session::enqueue`](crate::backend::Session::enqueue) ever
/// sees it.
#[derive(Clone, Copy, Debug)]
pub struct CallBuffers {
    /// This rank's contribution. Any alignment. In place, it is `output` itself for `all_reduce`,
    /// `broadcast` and `all_to_all`; this rank's part of `output` for `all_gather`; and `output`
    /// is this rank's part of it for `reduce_scatter`. Other overlaps are not allowed.
    pub input: *const u8,
    /// This rank's result. Any alignment.
    pub output: *mut u8,
    /// Vendor stream handle; 0 for host memory. It outlives its calls as
    /// [`Communicator::run`](crate::communicator::Communicator::run) says.
    pub stream: u64,
}
