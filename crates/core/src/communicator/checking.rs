//! The setting `check = "args"`: before a call starts, ranks compare all that must be equal of it
//! over the control plane. So a mistake that a backend cannot see, or would see only by waiting, is a
//! sentence on every rank, and nothing has been started.

use std::panic::Location;

use serde::{Deserialize, Serialize};

use super::{CallError, Communicator, Decided, Inner};
use crate::agreement::gather;
use crate::backend::EnqueueError;
use crate::bootstrap::{Bootstrap, BootstrapError};
use crate::call::{CallSig, Split};
use crate::camps::first_difference;
use crate::record::{Entry, Event};

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

/// A rank's call, or why it makes none.
#[derive(Serialize, Deserialize)]
struct Said(Result<Vec<String>, String>);

impl Communicator {
    /// Records the call, and compares it before anything is done: do all ranks make it, as its number
    /// tells and as it is decided?
    #[cold]
    pub(super) fn compare_first(
        &self,
        inner: &mut Inner,
        call: &CallSig<'_>,
        decided: &Result<Decided, CallError>,
        site: &'static Location<'static>,
    ) -> Result<(), CallError> {
        inner.usable()?;
        let Some(channel) = &self.channel else {
            let what = "`check = args` compares calls over the control plane, and this group keeps \
                        none: give it one by with_channel()";
            return Err(CallError::Invalid { op: call.op, what: what.to_owned() });
        };
        let seq = inner.seq + 1;
        if let Ok(Decided { target, .. }) = *decided {
            self.begin(inner, Entry { event: Event::Call(call), seq, target, site })?;
        }
        let target =
            decided.as_ref().map(|decided| self.targets()[decided.target as usize].as_str());
        compare(&**channel, call, seq, target).map_err(|e| self.poison(inner, e))
    }
}

/// Compares call `seq` with those of all other ranks. `target` would serve it; it is what the call
/// is invalid by if it cannot be made.
fn compare(
    channel: &dyn Bootstrap,
    call: &CallSig<'_>,
    seq: u64,
    target: Result<&str, &CallError>,
) -> Result<(), EnqueueError> {
    let mine = Said(target.map(|target| words(call, seq, target)).map_err(ToString::to_string));
    let step = format!("compare call {seq}");
    let all: Vec<Said> = gather(channel, &step, &mine).map_err(|e| lost(e, seq))?;
    let unable: Vec<(usize, &String)> = (0..)
        .zip(&all)
        .filter_map(|(rank, said)| said.0.as_ref().err().map(|why| (rank, why)))
        .collect();
    if unable.len() == all.len() {
        // All make the same mistake: each is told so by its own call, and nothing was started.
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
        BootstrapError::Lost { rank, step, how } => EnqueueError::Lost { step, seq, rank, how },
        BootstrapError::Missing { ranks, step, waited } => {
            EnqueueError::Late { step, seq, ranks, waited }
        }
        other => EnqueueError::Mismatch { seq, what: other.to_string() },
    }
}
