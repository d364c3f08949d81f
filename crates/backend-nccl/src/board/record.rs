//! What must be equal on all ranks of a call.

use std::fmt;

use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};

use crate::eligibility::DESCRIPTOR;

/// A call, in three words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// Op, dtype, reduce op, mode and algorithm, 8 bits each, and the root.
    pub(super) kind: u64,
    pub(super) count: u64,
    /// A digest of the counts per rank; 0 where parts are even.
    pub(super) split: u64,
}

/// Bits of the root, below the fields of 8 bits.
const ROOT: u32 = 24;
const FIELDS: u32 = 5;
/// What stands for the replay of a graph where ops stand.
const REPLAY: u64 = 0xFE;

impl Record {
    pub(crate) fn of(algorithm: usize, call: &CallSig<'_>) -> Record {
        let fields = [
            call.op as u64,
            call.dtype as u64,
            call.reduce_op as u64,
            call.mode as u64,
            algorithm as u64,
        ];
        let kind = fields.iter().fold(0, |kind, field| kind << 8 | field);
        Record {
            kind: kind << ROOT | u64::from(call.root),
            count: call.count as u64,
            split: match call.split {
                Split::Even => 0,
                Split::PerRank(counts) => {
                    counts.iter().fold(1, |all, count| mixed(all, *count as u64)) | 1
                }
            },
        }
    }

    /// Of a replay of the graph that the engine knows by this.
    pub(crate) fn of_replay(graph: u64) -> Record {
        Record { kind: REPLAY << (8 * (FIELDS - 1)) << ROOT, count: graph, split: 0 }
    }

    /// The digest of a rank's calls up to this one, from that of those before.
    pub(crate) fn after(&self, before: u64) -> u64 {
        [self.kind, self.count, self.split].into_iter().fold(before, mixed)
    }
}

/// The golden ratio's bits: every bit of the word reaches the upper half.
fn mixed(all: u64, word: u64) -> u64 {
    (all ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32)
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |nth: u32| (self.kind >> (ROOT + 8 * (FIELDS - 1 - nth)) & 0xFF) as usize;
        let word = |names: &[&'static str], nth| names.get(field(nth)).copied().unwrap_or("?");
        if field(0) as u64 == REPLAY {
            return write!(f, "the replay of graph {}", self.count);
        }
        let algorithm = DESCRIPTOR.algorithms.get(field(4));
        write!(
            f,
            "{} {} of {} x {} from root {} by {}{}{}",
            word(Op::NAMES, 0),
            word(ReduceOp::NAMES, 2),
            self.count,
            word(Dtype::NAMES, 1),
            self.kind & ((1 << ROOT) - 1),
            algorithm.map_or("?".to_owned(), |a| DESCRIPTOR.target(a)),
            if self.split == 0 { "" } else { ", with counts per rank" },
            if field(3) == Mode::Graph as usize { ", captured" } else { "" },
        )
    }
}
