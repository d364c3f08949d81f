//! Which bytes of a tensor are whose: the parts that a collective divides it into, and the pieces
//! of them that travel at a time.

use crossover_core::call::{CallSig, Op, Split};
use crossover_kernel_abi::MAX_WORLD;

/// The parts of one tensor, in bytes, in rank order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) at: [u64; MAX_WORLD],
    pub(crate) bytes: [u64; MAX_WORLD],
    pub(crate) world: usize,
}

impl Parts {
    /// Of the tensor that `call` divides: `all_gather`'s output, the input of the others.
    pub(crate) fn of(call: &CallSig<'_>, world: u32) -> Parts {
        let element = call.dtype.size() as u64;
        let world = world as usize;
        let even = match call.op {
            Op::AllGather => call.count as u64,
            _ => call.count as u64 / world as u64,
        };
        let mut parts = Parts { at: [0; MAX_WORLD], bytes: [0; MAX_WORLD], world };
        let mut end = 0;
        for rank in 0..world {
            let count = match call.split {
                Split::Even => even,
                Split::PerRank(counts) => counts[rank] as u64,
            };
            parts.at[rank] = end;
            parts.bytes[rank] = count * element;
            end += count * element;
        }
        parts
    }

    /// The largest.
    pub(crate) fn largest(&self) -> u64 {
        self.bytes[..self.world].iter().copied().max().unwrap_or(0)
    }

    /// Are they equal, and none of them empty?
    pub(crate) fn are_even(&self) -> bool {
        self.bytes[..self.world].iter().all(|bytes| *bytes == self.bytes[0] && *bytes > 0)
    }

    /// The piece of every part that starts `from` bytes into it and has at most `most`.
    pub(crate) fn piece(&self, from: u64, most: u64) -> Parts {
        let mut piece = *self;
        for rank in 0..self.world {
            piece.bytes[rank] = self.bytes[rank].saturating_sub(from).min(most);
            piece.at[rank] = self.at[rank] + from.min(self.bytes[rank]);
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(bytes: &[u64]) -> Parts {
        let mut parts = Parts { at: [0; MAX_WORLD], bytes: [0; MAX_WORLD], world: bytes.len() };
        let mut end = 0;
        for (rank, n) in bytes.iter().enumerate() {
            (parts.at[rank], parts.bytes[rank]) = (end, *n);
            end += n;
        }
        parts
    }

    #[test]
    fn pieces_cover_every_byte_once() {
        for all in [vec![10, 0, 33, 16], vec![5, 5], vec![0, 0, 1]] {
            for most in [1, 4, 16, 100] {
                let whole = parts(&all);
                let mut seen = vec![0; all.iter().sum::<u64>() as usize];
                let mut from = 0;
                while from < whole.largest() {
                    let piece = whole.piece(from, most);
                    for rank in 0..all.len() {
                        let at = piece.at[rank] as usize;
                        seen[at..at + piece.bytes[rank] as usize].iter_mut().for_each(|n| *n += 1);
                    }
                    from += most;
                }
                assert!(seen.iter().all(|n| *n == 1), "{all:?} by {most}: {seen:?}");
            }
        }
    }
}
