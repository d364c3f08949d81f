//! Whether all ranks make the same call: each posts a fingerprint of its own before it launches,
//! and looks at those that peers have posted. Whoever comes last sees all, so a difference is
//! always seen by somebody, who ends the group for all.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp};

use super::Board;
use crate::eligibility::DESCRIPTOR;

/// Calls of a rank that are kept. A call of which a peer that is further ahead has lost its own is
/// compared by the next that is kept: tags are of all calls so far.
const KEPT: usize = 64;

/// What stands for the replay of a graph where ops stand.
const REPLAY: u64 = 0xFE;

/// A rank's latest calls.
#[repr(C)]
pub(super) struct Ring([Entry; KEPT]);

/// `tag` is written last: the call's number, and half of the digest of all calls up to it.
#[repr(C)]
struct Entry {
    tag: AtomicU64,
    kind: AtomicU64,
    count: AtomicU64,
    split: AtomicU64,
}

/// What must be equal on all ranks of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Op, dtype, reduce op, mode, algorithm and root, 8 bits each.
    kind: u64,
    count: u64,
    /// A digest of the counts per rank; 0 where parts are even.
    split: u64,
}

impl Fingerprint {
    pub(crate) fn of(algorithm: usize, call: &CallSig<'_>) -> Fingerprint {
        let fields = [
            call.op as u64,
            call.dtype as u64,
            call.reduce_op as u64,
            call.mode as u64,
            algorithm as u64,
            u64::from(call.root),
        ];
        Fingerprint {
            kind: fields.iter().fold(0, |kind, field| kind << 8 | field),
            count: call.count as u64,
            split: call.split.digest(),
        }
    }

    /// Of a replay of the graph that the engine knows by this.
    pub(crate) fn of_replay(graph: u64) -> Fingerprint {
        Fingerprint { kind: REPLAY << (8 * 5), count: graph, split: 0 }
    }

    /// The digest of a rank's calls up to this one, from that of those before.
    pub(crate) fn after(&self, before: u64) -> u64 {
        [self.kind, self.count, self.split].iter().fold(before, |all, word| {
            // The golden ratio's bits: every bit of the word reaches the upper half.
            (all ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32)
        })
    }

    fn in_words(&self) -> String {
        let field = |nth: u32| (self.kind >> (8 * (5 - nth)) & 0xFF) as usize;
        let word = |names: &[&'static str], nth| names.get(field(nth)).copied().unwrap_or("?");
        if field(0) as u64 == REPLAY {
            return format!("the replay of graph {}", self.count);
        }
        let algorithm = DESCRIPTOR.algorithms.get(field(4)).map_or("?", |a| a.name);
        let parts = if self.split == 0 { "" } else { ", with counts per rank" };
        let captured = if field(3) == Mode::Graph as usize { ", captured" } else { "" };
        format!(
            "{} {} of {} x {} from root {} by ipc/{algorithm}{parts}{captured}",
            word(Op::NAMES, 0),
            word(ReduceOp::NAMES, 2),
            self.count,
            word(Dtype::NAMES, 1),
            field(5),
        )
    }
}

impl Board {
    /// Posts this rank's call, and compares it with those of the peers that are there. `history` is
    /// the digest of its calls up to this one.
    #[inline]
    pub(crate) fn compare(
        &self,
        rank: u32,
        world: u32,
        seq: u64,
        mine: &Fingerprint,
        history: u64,
    ) -> Result<(), EnqueueError> {
        let tag = seq << 32 | history >> 32;
        let own = self.entry(rank, seq);
        own.kind.store(mine.kind, Relaxed);
        own.count.store(mine.count, Relaxed);
        own.split.store(mine.split, Relaxed);
        own.tag.store(tag, Release);
        // Of two ranks that come at the same time one sees the other's: a store is not overtaken by
        // the loads behind it.
        fence(SeqCst);
        for peer in (0..world).filter(|peer| *peer != rank) {
            let theirs = self.entry(peer, seq).tag.load(Acquire);
            if theirs != tag && theirs >> 32 == seq & 0xFFFF_FFFF {
                return Err(self.difference(rank, peer, seq, mine));
            }
        }
        Ok(())
    }

    #[cold]
    fn difference(&self, rank: u32, peer: u32, seq: u64, mine: &Fingerprint) -> EnqueueError {
        let entry = self.entry(peer, seq);
        let theirs = Fingerprint {
            kind: entry.kind.load(Relaxed),
            count: entry.count.load(Relaxed),
            split: entry.split.load(Relaxed),
        };
        let what = if *mine == theirs {
            format!("ranks {peer} and {rank} differ in a call before this one")
        } else if (mine.kind, mine.count) == (theirs.kind, theirs.count) {
            format!("ranks {peer} and {rank} have other counts per rank")
        } else {
            format!("rank {rank} has {}, rank {peer} has {}", mine.in_words(), theirs.in_words())
        };
        EnqueueError::Mismatch { seq, what }
    }

    fn entry(&self, rank: u32, seq: u64) -> &Entry {
        &self.pages().calls[rank as usize].0[seq as usize % KEPT]
    }
}
