//! Which call comes next: drawn from a seed that all ranks share.

use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;

use crate::data::Rng;

/// A call, all but its buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    op: Op,
    dtype: Dtype,
    reduce_op: ReduceOp,
    count: usize,
    root: u32,
    counts: Option<Vec<usize>>,
    /// Input and output share memory, as far as the op allows.
    pub in_place: bool,
}

impl Shape {
    /// For a group of `world` ranks; no rank's input is larger than `most` bytes.
    pub fn draw(rng: &mut Rng, world: usize, most: usize) -> Self {
        let op = Op::ALL[rng.below(Op::ALL.len() as u64) as usize];
        let dtype = Dtype::ALL[rng.below(Dtype::ALL.len() as u64) as usize];
        let reduce_op = ReduceOp::ALL[rng.below(ReduceOp::ALL.len() as u64) as usize];
        let elements = log_uniform(rng, most) / dtype.size();
        let (mut count, mut counts) = (elements, None);
        match op {
            Op::AllGather | Op::ReduceScatter if rng.below(3) == 0 => {
                let each: Vec<usize> =
                    (0..world).map(|_| log_uniform(rng, elements / world)).collect();
                count = match op {
                    Op::AllGather => each.iter().copied().max().unwrap_or(0),
                    _ => each.iter().sum(),
                };
                counts = Some(each);
            }
            // Every rank receives a part.
            Op::AllGather => count = elements / world,
            Op::ReduceScatter | Op::AllToAll => count = elements / world * world,
            Op::AllReduce | Op::Broadcast => {}
        }
        let root = if op == Op::Broadcast { rng.below(world as u64) as u32 } else { 0 };
        Shape { op, dtype, reduce_op, count, root, counts, in_place: rng.below(2) == 1 }
    }

    /// The call as it is made.
    pub fn call(&self) -> CallSig<'_> {
        CallSig {
            op: self.op,
            dtype: self.dtype,
            reduce_op: self.reduce_op,
            count: self.count,
            mode: Mode::Eager,
            root: self.root,
            split: self.counts.as_deref().map_or(Split::Even, Split::PerRank),
            contract: Contract::DEFAULT,
        }
    }
}

/// From 0 to `most`, every binary magnitude as often as every other, 0 too.
fn log_uniform(rng: &mut Rng, most: usize) -> usize {
    let magnitudes = u64::from(usize::BITS - most.leading_zeros()) + 1;
    match rng.below(magnitudes) {
        0 => 0,
        magnitude => (1 << (magnitude - 1) | rng.below(1 << (magnitude - 1)) as usize).min(most),
    }
}
