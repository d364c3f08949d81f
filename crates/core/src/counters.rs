//! What really ran: calls and bytes by op, target and size.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::call::Op;
use crate::plan::{COPY, Choice, Offer};

/// Sizes are counted by their power of two: bucket b holds sizes of b bits, so 0 B is bucket 0
/// and 64 KiB bucket 17.
const BUCKETS: usize = 65;

/// One line of a [`Communicator`](crate::communicator::Communicator)'s counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Which collective.
    pub op: Op,
    /// `backend/algorithm`, or `copy`.
    pub target: String,
    /// The least size in this bucket, in input bytes per rank; the bucket ends before twice that.
    pub at_least: u64,
    /// Calls that were handed to the target.
    pub calls: u64,
    /// Their input bytes per rank, added up.
    pub bytes: u64,
}

/// Readable from any thread while a call runs; written under the communicator's lock only.
pub(crate) struct Counters {
    /// First the copy, then every algorithm of every offer.
    targets: Vec<String>,
    /// Index of each offer's first algorithm in `targets`.
    first: Vec<usize>,
    cells: Vec<Cell>,
}

#[derive(Default)]
struct Cell {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn new(offers: &[Offer]) -> Self {
        let mut targets = vec![COPY.to_owned()];
        let mut first = Vec::new();
        for offer in offers {
            first.push(targets.len());
            targets.extend(offer.descriptor.algorithms.iter().map(|a| offer.descriptor.target(a)));
        }
        let mut cells = Vec::new();
        cells.resize_with(targets.len() * Op::ALL.len() * BUCKETS, Cell::default);
        Counters { targets, first, cells }
    }

    /// Every target, by its row.
    pub(crate) fn targets(&self) -> &[String] {
        &self.targets
    }

    /// The row of what runs such calls.
    pub(crate) fn row(&self, choice: Choice) -> usize {
        match choice {
            Choice::Copy => 0,
            Choice::Serve { offer, algorithm, .. } => {
                self.first[offer as usize] + algorithm as usize
            }
        }
    }

    /// The cell that counts such calls.
    pub(crate) fn cell(&self, op: Op, choice: Choice, bytes: u64) -> usize {
        let bucket = (u64::BITS - bytes.leading_zeros()) as usize;
        (self.row(choice) * Op::ALL.len() + op as usize) * BUCKETS + bucket
    }

    /// Counts a call in its cell, and says whether it is the first there. Its caller holds the
    /// communicator's lock, so a load and a store suffice.
    pub(crate) fn count(&self, cell: usize, bytes: u64) -> bool {
        let cell = &self.cells[cell];
        let before = cell.calls.load(Relaxed);
        cell.calls.store(before + 1, Relaxed);
        cell.bytes.store(cell.bytes.load(Relaxed) + bytes, Relaxed);
        before == 0
    }

    /// Every cell that is not zero.
    pub(crate) fn snapshot(&self) -> Vec<Count> {
        let mut counts = Vec::new();
        for (at, cell) in self.cells.iter().enumerate() {
            let calls = cell.calls.load(Relaxed);
            if calls > 0 {
                let (row, bucket) = (at / BUCKETS, at % BUCKETS);
                counts.push(Count {
                    op: Op::ALL[row % Op::ALL.len()],
                    target: self.targets[row / Op::ALL.len()].clone(),
                    at_least: if bucket == 0 { 0 } else { 1 << (bucket - 1) },
                    calls,
                    bytes: cell.bytes.load(Relaxed),
                });
            }
        }
        counts
    }
}
