//! A ring as a reader has it: a copy that no longer moves, taken from a living group or from a
//! file. Everything that judges or prints works on images alone.

use std::collections::BTreeMap;

use crossover_core::call::{Dtype, Mode, Op, ReduceOp};

use crate::about::About;

/// One rank's ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Where it comes from, for messages: a file, or a process.
    pub source: String,
    /// Which group, rank and process.
    pub about: About,
    /// How far the rank is.
    pub progress: Progress,
    /// What is kept of its records, by number. A torn or lost one is missing.
    pub records: BTreeMap<u64, Record>,
    /// Is the rank's process still there?
    pub life: Life,
}

/// How far a rank is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Records so far: the last one's number. Numbers are equal on ranks that do the same.
    pub issued: u64,
    /// The last record whose call came back to its caller. On devices a call comes back when it is
    /// enqueued.
    pub finished: u64,
    /// The digest of all records.
    pub chain: u64,
    /// The engine's step.
    pub step: u32,
    /// Where the rank is in its group's life.
    pub phase: Phase,
    /// Since when, nanoseconds since 1970: of an end (failed, closed, dropped) exactly. 0 if it is not known.
    pub entered: u64,
    /// What its device is waiting for, if it has been for long.
    pub device: Option<DeviceWait>,
    /// The error that ended the group on this rank.
    pub end: Option<String>,
    /// When the rank joined its group, nanoseconds since 1970.
    pub born: u64,
    /// The watchdog's last look, nanoseconds since 1970.
    pub beat: u64,
    /// When this image was taken, nanoseconds since 1970.
    pub taken: u64,
}

/// A kernel that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceWait {
    /// The call, as the device counts: replays of graphs count too. The low 32 bits.
    pub call: u64,
    /// The awaited ranks.
    pub awaited: Vec<u32>,
    /// What for.
    pub what: String,
    /// Since when, nanoseconds since 1970.
    pub since: u64,
}

/// Where a rank is in its group's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// It makes calls.
    #[default]
    Open = 0,
    /// It compares and exchanges what it captured.
    Committing = 1,
    /// It says goodbye.
    Closing = 2,
    /// It said goodbye.
    Closed = 3,
    /// A call failed, or the group was aborted.
    Failed = 4,
    /// It dropped the group without a goodbye.
    Dropped = 5,
}

impl Phase {
    /// All, by number.
    pub const ALL: [Phase; 6] = [
        Phase::Open,
        Phase::Committing,
        Phase::Closing,
        Phase::Closed,
        Phase::Failed,
        Phase::Dropped,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        ["open", "committing", "closing", "closed", "failed", "dropped"][self as usize]
    }
}

/// Is a rank's process there?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It holds its ring.
    Running,
    /// It holds its ring and is stopped, by a signal or a debugger.
    Stopped,
    /// It is gone.
    Gone,
    /// Its ring is a copy in a file: nobody can tell any more.
    Unknown,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number, from 1. Ranks that do the same have the same under one number.
    pub number: u64,
    /// The number of its call in the group, as errors have it. A note has that of the call before.
    pub seq: u64,
    /// What it records.
    pub what: What,
    /// Element type; of a call.
    pub dtype: Dtype,
    /// How contributions are combined; of a call that reduces.
    pub reduce_op: ReduceOp,
    /// Now or captured; of a call.
    pub mode: Mode,
    /// Of a broadcast.
    pub root: u32,
    /// Elements of a call; a state's digest; a graph's key.
    pub count: u64,
    /// The engine's step at that time.
    pub step: u32,
    /// The call's place in the program, or what the engine calls it; empty if not known.
    pub site: String,
    /// What served the call, such as `ipc/one_shot_push`; empty for notes.
    pub target: String,
    /// A digest of all that must be equal on every rank: not of site, step and time.
    pub fingerprint: u64,
    /// The digest of all fingerprints up to this one: equal chains, equal histories.
    pub chain: u64,
    /// When, nanoseconds since 1970.
    pub at: u64,
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A call.
    Call(Op),
    /// The engine's note of its state: step and digest are compared between ranks.
    State,
    /// The replay of a graph.
    Replay,
    /// The end of a capture.
    Commit,
    /// A goodbye.
    Close,
}

impl Record {
    /// Bytes of one rank's input; 0 for notes. Saturates.
    pub fn bytes(&self) -> u64 {
        match self.what {
            What::Call(_) => self.count.saturating_mul(self.dtype.size() as u64),
            _ => 0,
        }
    }
}
