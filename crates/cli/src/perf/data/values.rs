//! Contributions to reductions, and their results, as whole numbers.

use crossover_core::call::ReduceOp;

use super::encode::{Encoder, exact_up_to, is_signed};
use super::stream::Stream;
use super::{CHUNK, Case};

/// A sum of values within this needs no more than a byte to be drawn from.
const WIDEST: i32 = 100;

/// What the ranks give in one call that reduces.
pub(super) struct Values {
    call: u64,
    world: u32,
    reduce_op: ReduceOp,
    signed: bool,
    /// The greatest result.
    limit: i32,
    encoder: Encoder,
    /// What is given for each byte drawn, where nothing else matters: a check goes over each
    /// element of each rank, and most checks are of sums.
    by_byte: Option<Box<[i32; 256]>>,
}

impl Values {
    pub(super) fn new(case: &Case, call: u64) -> Values {
        let mut values = Values {
            call,
            world: case.world,
            reduce_op: case.reduce_op,
            signed: is_signed(case.dtype),
            limit: exact_up_to(case.dtype),
            encoder: Encoder::new(case.dtype),
            by_byte: None,
        };
        let by_byte_alone = match case.reduce_op {
            ReduceOp::Sum => values.limit >= case.world as i32,
            ReduceOp::Min | ReduceOp::Max => true,
            ReduceOp::Prod | ReduceOp::Avg => false,
        };
        if by_byte_alone {
            let table = std::array::from_fn(|byte| values.value(0, 0, byte as i32));
            values.by_byte = Some(Box::new(table));
        }
        values
    }

    /// A rank's elements from number `first` on.
    pub(super) fn write_input(&self, rank: u32, first: usize, elements: &mut [u8]) {
        self.encoder.write(&self.contributions(rank, first), elements);
    }

    /// The reduction over all ranks, from element `first` on.
    pub(super) fn write_result(&self, first: usize, elements: &mut [u8]) {
        self.encoder.write(&self.results(first), elements);
    }

    fn results(&self, first: usize) -> [i32; CHUNK] {
        let mut results = self.contributions(0, first);
        for rank in 1..self.world {
            let pairs = results.iter_mut().zip(self.contributions(rank, first));
            match self.reduce_op {
                ReduceOp::Sum | ReduceOp::Avg => pairs.for_each(|(result, value)| *result += value),
                ReduceOp::Prod => pairs.for_each(|(result, value)| *result *= value),
                ReduceOp::Min => pairs.for_each(|(result, value)| *result = value.min(*result)),
                ReduceOp::Max => pairs.for_each(|(result, value)| *result = value.max(*result)),
            }
        }
        // Contributions to an average add up to a multiple of the world.
        if self.reduce_op == ReduceOp::Avg {
            results.iter_mut().for_each(|result| *result /= self.world as i32);
        }
        results
    }

    /// A chunk of what one rank gives.
    fn contributions(&self, rank: u32, first: usize) -> [i32; CHUNK] {
        // An average is steered by a stream that all ranks share.
        let drawn_by = if self.reduce_op == ReduceOp::Avg { u32::MAX } else { rank };
        let mut drawn = [0; CHUNK];
        Stream::of(self.call, drawn_by).fill(first as u64, &mut drawn);
        if let Some(table) = &self.by_byte {
            return drawn.map(|byte| table[usize::from(byte)]);
        }
        let mut element = first;
        drawn.map(|byte| {
            element += 1;
            self.value(rank, element, i32::from(byte))
        })
    }

    fn value(&self, rank: u32, element: usize, byte: i32) -> i32 {
        let world = self.world as usize;
        // At most so many ranks, other ones for each element.
        let is_among = |ranks: i32| (rank as usize + element) % world < ranks as usize;
        match self.reduce_op {
            ReduceOp::Sum => {
                let widest = (self.limit / self.world as i32).clamp(1, WIDEST);
                if is_among(self.limit) { self.within(widest, byte) } else { 0 }
            }
            ReduceOp::Min | ReduceOp::Max => self.within(self.limit.min(WIDEST), byte),
            ReduceOp::Prod => {
                // At most three factors of two: 8 is exact in every type.
                let magnitude = if is_among(3) && byte & 1 == 0 { 2 } else { 1 };
                if self.signed && byte & 2 == 0 { -magnitude } else { magnitude }
            }
            ReduceOp::Avg => {
                // All ranks give the average, but that pairs of them deviate from it in opposite
                // directions.
                let widest = (self.limit / self.world as i32 / 2).clamp(1, 3);
                let deviation = byte / 16 % (widest + 1);
                let average = self.within(widest, byte % 16) + if self.signed { 0 } else { widest };
                match rank {
                    unpaired if unpaired + 1 == self.world && unpaired % 2 == 0 => average,
                    even if even % 2 == 0 => average + deviation,
                    _ => average - deviation,
                }
            }
        }
    }

    /// A number whose magnitude is not beyond `widest`.
    fn within(&self, widest: i32, byte: i32) -> i32 {
        if self.signed { byte % (2 * widest + 1) - widest } else { byte % (widest + 1) }
    }
}

#[cfg(test)]
mod tests {
    use crossover_core::call::{Dtype, Op};

    use super::*;

    #[test]
    fn nothing_is_given_or_comes_out_that_a_type_does_not_hold() {
        for world in [1, 2, 3, 8, 16, 64] {
            for &reduce_op in ReduceOp::ALL {
                for dtype in [Dtype::F8E5M2, Dtype::F8E4M3, Dtype::I8, Dtype::U8, Dtype::Bf16] {
                    let case = Case::new(Op::AllReduce, dtype, reduce_op, (0, world), 4096);
                    let values = Values::new(&case, 11);
                    let exact = exact_up_to(dtype);
                    let least = if is_signed(dtype) { -exact } else { 0 };
                    let given = (0..world).map(|rank| values.contributions(rank, 0));
                    for value in given.chain([values.results(0)]).flatten() {
                        assert!((least..=exact).contains(&value), "{value}: {case:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn contributions_vary_between_ranks() {
        for &reduce_op in ReduceOp::ALL {
            let case = Case::new(Op::AllReduce, Dtype::Bf16, reduce_op, (0, 4), 4096);
            let values = Values::new(&case, 11);
            assert_ne!(values.contributions(0, 0), values.contributions(1, 0), "{reduce_op}");
        }
    }
}
