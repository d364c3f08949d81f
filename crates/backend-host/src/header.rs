//! The call header: what each rank says about its call in the call's first step, so that ranks
//! that make different calls learn so before they use one another's data.
//!
//! A peer compares a tag of 32 bits, the call's number and, in a slot, the count and split: all
//! in the cache line that it waits for. The whole header lies in the slot's record, for
//! the sentence that says what differs.

use std::sync::atomic::Ordering::Relaxed;

use crossover_core::call::CallSig;

use crate::segment::Segment;

/// Four words: the call's number; algorithm, op, dtype, reduce op and root; the count; a digest
/// of the counts per rank, 0 for an even split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header([u64; 4]);

impl Header {
    /// Of a call.
    #[inline(always)]
    pub fn of_call(algorithm: usize, seq: u64, call: &CallSig<'_>) -> Self {
        // The reduce op means nothing to an op that copies, and may differ.
        let reduce_op = if call.op.reduces() { call.reduce_op as u64 } else { 0 };
        let what = algorithm as u64
            | (call.op as u64) << 8
            | (call.dtype as u64) << 16
            | reduce_op << 24
            | u64::from(call.root) << 32;
        Header([seq, what, call.count as u64, call.split.digest()])
    }

    /// Of a goodbye after call `seq`.
    pub fn of_close(seq: u64) -> Self {
        Header([seq, CLOSE << 8, 0, 0])
    }

    /// As it travels.
    pub fn words(&self) -> [u64; 4] {
        self.0
    }

    /// As it came.
    pub fn from_words(words: [u64; 4]) -> Self {
        Header(words)
    }

    /// What of it fits beside a step's number. By itself it tells any two calls apart whose splits
    /// are even and counts below 2^12; with [`Header::rest`] and the call's number, any two.
    #[inline(always)]
    pub(crate) fn tag(&self) -> u32 {
        let fields = [
            (self.algorithm(), 3),
            (self.op(), 3),
            (self.dtype(), 4),
            (self.reduce_op(), 3),
            (self.root(), 4),
            (u64::from(self.split() != 0), 1),
            (u64::from(self.count() >> 12 != 0), 1),
            (self.count(), 12),
        ];
        let low = |value: u64, bits: u32| value & ((1 << bits) - 1);
        fields.iter().fold(0, |tag, (value, bits)| tag << bits | low(*value, *bits)) as u32
    }

    /// The count and the split. A split follows from its own counts, so that its digest will do.
    #[inline]
    pub(crate) fn rest(&self) -> u64 {
        if self.split() == 0 { self.count() } else { self.split() }
    }

    /// Writes it into the own slot's record, before the step is published.
    #[inline]
    pub(crate) fn write(&self, segment: &Segment, rank: u32, parity: usize) {
        for (to, word) in segment.record(rank, parity).into_iter().zip(self.0) {
            to.store(word, Relaxed);
        }
    }

    /// Reads a rank's, after it has published the step.
    pub(crate) fn read(segment: &Segment, rank: u32, parity: usize) -> Self {
        Header(segment.record(rank, parity).map(|word| word.load(Relaxed)))
    }

    /// The call's number.
    #[inline]
    pub fn seq(&self) -> u64 {
        self.0[0]
    }

    #[inline]
    pub(crate) fn algorithm(&self) -> u64 {
        self.0[1] & 0xff
    }

    /// An index into `Op::ALL`, or [`CLOSE`].
    #[inline]
    pub(crate) fn op(&self) -> u64 {
        self.0[1] >> 8 & 0xff
    }

    #[inline]
    pub(crate) fn dtype(&self) -> u64 {
        self.0[1] >> 16 & 0xff
    }

    #[inline]
    pub(crate) fn reduce_op(&self) -> u64 {
        self.0[1] >> 24 & 0xff
    }

    #[inline]
    pub(crate) fn root(&self) -> u64 {
        self.0[1] >> 32
    }

    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.0[2]
    }

    #[inline]
    pub(crate) fn split(&self) -> u64 {
        self.0[3]
    }
}

/// What stands for a goodbye where ops stand.
pub(crate) const CLOSE: u64 = 0xff;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crossover_core::call::{Dtype, Mode, Op, ReduceOp, Split};
    use crossover_core::contract::Contract;

    use super::*;
    use crate::eligibility::DESCRIPTOR;
    use crate::layout::MAX_WORLD;

    #[test]
    fn tags_tell_all_small_calls_apart() {
        let mut seen = HashMap::new();
        for algorithm in 0..DESCRIPTOR.algorithms.len() {
            for (&op, &dtype) in
                Op::ALL.iter().flat_map(|op| Dtype::ALL.iter().map(move |d| (op, d)))
            {
                for &reduce_op in ReduceOp::ALL {
                    for (root, count) in [(0, 0), (0, 1), (MAX_WORLD - 1, 48), (7, 4095), (7, 4096)]
                    {
                        let (mode, split, contract) = (Mode::Eager, Split::Even, Contract::DEFAULT);
                        let call =
                            CallSig { op, dtype, reduce_op, count, mode, root, split, contract };
                        let header = Header::of_call(algorithm, 1, &call);
                        let before = seen.insert(header.tag(), header);
                        assert!(before.is_none_or(|before| before == header), "{call:?}");
                    }
                }
            }
        }
        let close = Header::of_close(1);
        assert!(!seen.contains_key(&close.tag()));
    }
}
