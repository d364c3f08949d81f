//! The call header: what each rank says about its call in the call's first step, so that ranks
//! that make different calls learn so before they use one another's data.

use std::sync::atomic::Ordering::Relaxed;

use crossover_core::call::{CallSig, Split};
use xxhash_rust::xxh3::xxh3_64;

use crate::segment::Segment;

/// Four words: the call's number; algorithm, op, dtype, reduce op and root; the count; a digest
/// of the counts per rank, 0 for an even split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header([u64; 4]);

impl Header {
    pub(crate) fn of_call(algorithm: usize, seq: u64, call: &CallSig<'_>) -> Self {
        // The reduce op means nothing to an op that copies, and may differ.
        let reduce_op = if call.op.reduces() { call.reduce_op as u64 } else { 0 };
        let what = algorithm as u64
            | (call.op as u64) << 8
            | (call.dtype as u64) << 16
            | reduce_op << 24
            | u64::from(call.root) << 32;
        let split = match call.split {
            Split::Even => 0,
            Split::PerRank(counts) => digest(counts),
        };
        Header([seq, what, call.count as u64, split])
    }

    /// Of a goodbye after call `seq`.
    pub(crate) fn of_close(seq: u64) -> Self {
        Header([seq, CLOSE << 8, 0, 0])
    }

    /// Writes it into the own slot's head, before the step is published.
    pub(crate) fn write(self, segment: &Segment, rank: u32, parity: usize) {
        for (to, word) in segment.header(rank, parity).into_iter().zip(self.0) {
            to.store(word, Relaxed);
        }
    }

    /// Reads a rank's, after it has published the step.
    pub(crate) fn read(segment: &Segment, rank: u32, parity: usize) -> Self {
        Header(segment.header(rank, parity).map(|word| word.load(Relaxed)))
    }

    pub(crate) fn seq(&self) -> u64 {
        self.0[0]
    }

    pub(crate) fn algorithm(&self) -> u64 {
        self.0[1] & 0xff
    }

    /// An index into `Op::ALL`, or [`CLOSE`].
    pub(crate) fn op(&self) -> u64 {
        self.0[1] >> 8 & 0xff
    }

    pub(crate) fn dtype(&self) -> u64 {
        self.0[1] >> 16 & 0xff
    }

    pub(crate) fn reduce_op(&self) -> u64 {
        self.0[1] >> 24 & 0xff
    }

    pub(crate) fn root(&self) -> u64 {
        self.0[1] >> 32
    }

    pub(crate) fn count(&self) -> u64 {
        self.0[2]
    }

    pub(crate) fn split(&self) -> u64 {
        self.0[3]
    }
}

/// What stands for a goodbye where ops stand.
pub(crate) const CLOSE: u64 = 0xff;

fn digest(counts: &[usize]) -> u64 {
    // SAFETY: numbers have no padding, and any bytes may be read as `u8`.
    let bytes = unsafe { std::slice::from_raw_parts(counts.as_ptr().cast(), size_of_val(counts)) };
    xxh3_64(bytes).max(1)
}
