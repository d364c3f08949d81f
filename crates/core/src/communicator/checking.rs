//! The setting `check = "args"`: before a call starts, ranks compare all that must be equal of it
//! over the control plane. So a mistake that a backend cannot see, or would see only by waiting, is a
//! sentence on every rank, and nothing has been started.

use std::cell::RefCell;
use std::panic::Location;

use serde::{Deserialize, Serialize};

use super::{CallError, Communicator, Decided, Inner};
use crate::agreement::gather_unless;
use crate::backend::EnqueueError;
use crate::bootstrap::{Bootstrap, BootstrapError};
use crate::call::{CallBuffers, CallSig, Op, Split};
use crate::camps::first_difference;
use crate::record::{Entry, Event};
use crate::settings::Check;

/// What is compared, in words. What serves the call comes last, since it follows from the others.
const FIELDS: [&str; 9] = [
    "op",
    "call number",
    "dtype",
    "reduce op",
    "root",
    "count",
    "mode",
    "counts per rank",
    "backend",
];

/// What a call does while ranks compare it. An error has the call's number beside it.
const STEP: &str = "compare arguments";

/// A rank's call in words, or why it makes none.
#[derive(Serialize, Deserialize)]
struct Said(Result<Vec<String>, String>);

impl Communicator {
    /// Do ranks compare their calls?
    pub(super) fn compares(&self) -> bool {
        self.check == Check::Args && self.world() > 1
    }

    /// Records the call, and compares it before anything is done: do all ranks make it, as its number
    /// tells and as it is decided?
    #[cold]
    pub(super) fn compare_first(
        &self,
        inner: &mut Inner,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
        decided: Result<(), CallError>,
        site: &'static Location<'static>,
    ) -> Result<(), CallError> {
        inner.usable()?;
        let Some(channel) = &self.channel else {
            let what = "`check = args` compares calls over the control plane, and this group keeps \
                        none: give it one by with_channel()";
            return Err(CallError::Invalid { op: call.op, what: what.to_owned() });
        };
        let decided = decided.and_then(|()| not_null(call, buffers, self.rank));
        let seq = inner.seq + 1;
        let mine = match (&decided, inner.recent) {
            (Ok(()), Some(Decided { target, .. })) => {
                let entry = Entry { event: Event::Call(call), seq, target, site };
                self.begin(inner, entry)?;
                Ok(words(call, seq, &self.targets()[usize::from(target)]))
            }
            (Ok(()), None) => unreachable!("the call has just been decided"),
            (Err(why), _) => Err(why.to_string()),
        };
        compare(&**channel, seq, Said(mine), inner).map_err(|e| self.differ(inner, e))?;
        decided
    }

    /// To be called where a call turns out to make no sense before there is one: a slice has the wrong
    /// length, a binding has read nonsense. Peers that compare calls before they start ([`Check::Args`])
    /// wait for this rank's, and are told at once why none comes. Returns what the call ends with: `why`, or
    /// what ended the group.
    #[cold]
    pub fn refuse(&self, why: CallError) -> CallError {
        let Some(channel) = self.channel.as_deref().filter(|_| self.compares()) else {
            return why;
        };
        let mut inner = self.lock();
        let told = inner.usable().and_then(|()| {
            let said = Said(Err(why.to_string()));
            let seq = inner.seq + 1;
            compare(channel, seq, said, &mut inner).map_err(|e| self.differ(&mut inner, e))
        });
        told.err().unwrap_or(why)
    }

    /// A comparison failed. A peer that did not come to it may have had a reason.
    fn differ(&self, inner: &mut Inner, error: EnqueueError) -> CallError {
        let reason = if error.is_loss() { inner.ended() } else { None };
        self.poison(inner, reason.unwrap_or(error))
    }
}

/// Is there a place for all data that this rank gives and gets?
fn not_null(call: &CallSig<'_>, buffers: &CallBuffers, rank: u32) -> Result<(), CallError> {
    let part = match call.split {
        Split::PerRank(counts) => counts[rank as usize],
        Split::Even => call.count,
    };
    let gives = match call.op {
        Op::AllGather => part,
        Op::Broadcast if call.root != rank => 0,
        _ => call.count,
    };
    let gets = if call.op == Op::ReduceScatter { part } else { call.count };
    let places =
        [("input", buffers.input.is_null(), gives), ("output", buffers.output.is_null(), gets)];
    match places.into_iter().find(|(_, is_null, count)| *is_null && *count > 0) {
        Some((which, ..)) => {
            let what = format!("the {which} is null, and {} x {}", call.count, call.dtype);
            Err(CallError::Invalid { op: call.op, what: format!("{what} are to be moved") })
        }
        None => Ok(()),
    }
}

/// Compares call `seq` with those of all other ranks. Whoever has ended the group, or was told so, does not
/// come any more, and backends know before the control plane would have waited for it.
fn compare(
    channel: &dyn Bootstrap,
    seq: u64,
    mine: Said,
    inner: &mut Inner,
) -> Result<(), EnqueueError> {
    let (step, inner) = (format!("compare call {seq}"), RefCell::new(inner));
    let ended = || inner.borrow_mut().ended().map(|error| error.to_string());
    let all = gather_unless::<Said>(channel, &step, &mine, &ended).map_err(|e| lost(e, seq))?;
    let unable: Vec<(usize, &String)> = (0..)
        .zip(&all)
        .filter_map(|(rank, said)| said.0.as_ref().err().map(|why| (rank, why)))
        .collect();
    if unable.len() == all.len() {
        // All make a mistake: each is told of its own by its own call, and nothing was started.
        return Ok(());
    }
    let what = match unable.first() {
        Some((rank, why)) => Some(format!("rank {rank} cannot make its call: {why}")),
        None => {
            let values: Vec<Vec<String>> = all.into_iter().filter_map(|said| said.0.ok()).collect();
            first_difference(&FIELDS, &values)
        }
    };
    what.map_or(Ok(()), |what| Err(EnqueueError::Mismatch { seq, what }))
}

fn words(call: &CallSig<'_>, seq: u64, target: &str) -> Vec<String> {
    // The reduce op means nothing to an op that copies, and may differ.
    let reduce_op = if call.op.reduces() { call.reduce_op.name() } else { "none" };
    vec![
        call.op.to_string(),
        seq.to_string(),
        call.dtype.to_string(),
        reduce_op.to_owned(),
        call.root.to_string(),
        call.count.to_string(),
        call.mode.to_string(),
        match call.split {
            Split::Even => "alike".to_owned(),
            Split::PerRank(counts) => format!("{counts:?}"),
        },
        target.to_owned(),
    ]
}

/// What kept the comparison from being made, as a call's error.
fn lost(error: BootstrapError, seq: u64) -> EnqueueError {
    match error {
        BootstrapError::Lost { rank, how, .. } => {
            EnqueueError::Lost { step: STEP.to_owned(), seq, rank, how }
        }
        BootstrapError::Missing { ranks, waited, .. } => {
            EnqueueError::Late { step: STEP.to_owned(), seq, ranks, waited }
        }
        other => EnqueueError::Mismatch { seq, what: other.to_string() },
    }
}
