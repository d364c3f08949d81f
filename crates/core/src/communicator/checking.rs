//! The setting `check = "args"`: before a call starts, ranks compare all that must be equal of it
//! over the control plane. So a mistake that a backend cannot see, or would see only by waiting, is a
//! sentence on every rank, and nothing has been started.

use serde::{Deserialize, Serialize};

use super::{CallError, Communicator, Decided, Inner};
use crate::agreement::gather;
use crate::backend::EnqueueError;
use crate::bootstrap::BootstrapError;
use crate::call::{CallSig, Split};
use crate::camps::first_difference;

/// What is compared, in words; the words name what differs.
const FIELDS: [&str; 9] = [
    "op",
    "call number",
    "backend",
    "dtype",
    "reduce op",
    "root",
    "count",
    "mode",
    "counts per rank",
];

/// A rank's call, or why it makes none.
#[derive(Serialize, Deserialize)]
struct Said(Result<Vec<String>, String>);

impl Communicator {
    /// Before anything is done: do all ranks make this call, as its number tells and as it is decided?
    #[cold]
    pub(super) fn compare_first(
        &self,
        inner: &mut Inner,
        call: &CallSig<'_>,
        decided: &Result<Decided, CallError>,
    ) -> Result<(), CallError> {
        inner.usable()?;
        let target =
            decided.as_ref().map(|decided| self.targets()[decided.target as usize].as_str());
        self.compare(call, inner.seq + 1, target).map_err(|e| match e {
            CallError::Failed(e) => self.poison(inner, e),
            other => other,
        })
    }

    /// Compares call `seq` with those of all other ranks. `target` would serve it; it is what the call
    /// is invalid by if it cannot be made.
    fn compare(
        &self,
        call: &CallSig<'_>,
        seq: u64,
        target: Result<&str, &CallError>,
    ) -> Result<(), CallError> {
        if self.world() == 1 {
            return Ok(());
        }
        let Some(channel) = &self.channel else {
            let what = "`check = args` compares calls over the control plane, and this group keeps \
                        none: give it one by with_channel()";
            return Err(CallError::Invalid { op: call.op, what: what.to_owned() });
        };
        let mine = Said(target.map(|target| words(call, seq, target)).map_err(ToString::to_string));
        let step = format!("compare call {seq}");
        let all: Vec<Said> =
            gather(&**channel, &step, &mine).map_err(|e| CallError::Failed(lost(e, seq)))?;
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
                let values: Vec<Vec<String>> =
                    all.into_iter().filter_map(|said| said.0.ok()).collect();
                first_difference(&FIELDS, &values)
            }
        };
        match what {
            None => Ok(()),
            Some(what) => Err(CallError::Failed(EnqueueError::Mismatch { seq, what })),
        }
    }
}

fn words(call: &CallSig<'_>, seq: u64, target: &str) -> Vec<String> {
    // The reduce op means nothing to an op that copies, and may differ.
    let reduce_op = if call.op.reduces() { call.reduce_op.name() } else { "none" };
    vec![
        call.op.to_string(),
        seq.to_string(),
        target.to_owned(),
        call.dtype.to_string(),
        reduce_op.to_owned(),
        call.root.to_string(),
        call.count.to_string(),
        call.mode.to_string(),
        match call.split {
            Split::Even => "alike".to_owned(),
            Split::PerRank(counts) => format!("{counts:?}"),
        },
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
