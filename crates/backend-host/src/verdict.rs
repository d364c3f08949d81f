//! How a group ends when it ends badly: the first rank that gives up says why in the segment, and
//! every other rank repeats that instead of a story of its own.

use std::time::Duration;

use crossover_core::backend::EnqueueError;
use serde::{Deserialize, Serialize};

use crate::layout::VERDICT_BYTES;
use crate::protocol::{Posted, ring};
use crate::segment::Segment;

/// [`EnqueueError`] as it travels; an abort's step and call are the reader's own, since who
/// aborts may not be in a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Verdict {
    Aborted { rank: u32, reason: String },
    Late { step: String, seq: u64, ranks: Vec<u32>, waited: Duration },
    Lost { step: String, seq: u64, rank: u32, how: String },
    Mismatch { seq: u64, what: String },
}

/// Posts the error, or replaces it by the one that came first. Waits at most for another rank
/// that is in the middle of posting, and not long.
pub(crate) fn settle(segment: &Segment, error: EnqueueError) -> EnqueueError {
    let verdict = match error.clone() {
        EnqueueError::Late { step, seq, ranks, waited } => {
            Verdict::Late { step, seq, ranks, waited }
        }
        EnqueueError::Lost { step, seq, rank, how } => Verdict::Lost { step, seq, rank, how },
        EnqueueError::Mismatch { seq, what } => Verdict::Mismatch { seq, what },
        // An abort was read from the segment; this backend makes no other errors.
        _ => return error,
    };
    if post(segment, &verdict) == Posted::Ours {
        return error;
    }
    let (step, seq) = place(&error);
    // Who is posting may have died over it: then our own story must do.
    for _ in 0..PATIENCE {
        if let Some(first) = read(segment, step, seq) {
            return first;
        }
        rustix::thread::sched_yield();
    }
    error
}

/// Aborts the group on behalf of `rank`. Never waits.
pub(crate) fn abort(segment: &Segment, rank: u32, reason: &str) {
    let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= LONGEST_REASON;
    let reason = reason.char_indices().take_while(fits).map(|(_, c)| c).collect();
    post(segment, &Verdict::Aborted { rank, reason });
}

/// The verdict, if there is one. `step` and `seq` say where this rank is.
#[inline]
pub(crate) fn read(segment: &Segment, step: &str, seq: u64) -> Option<EnqueueError> {
    segment.verdict_word().is_written().then(|| decode(segment, step, seq))
}

/// More would not fit beside the rest.
const LONGEST_REASON: usize = 1024;
/// Yields while another rank writes a kilobyte.
const PATIENCE: u32 = 1000;

fn post(segment: &Segment, verdict: &Verdict) -> Posted {
    let bytes = postcard::to_stdvec(verdict).unwrap_or_default();
    let posted = segment.verdict_word().post(|| {
        let n = bytes.len().min(VERDICT_BYTES);
        // SAFETY: inside the mapping, and this rank alone was given the right to write here.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), segment.verdict(), n) };
    });
    if posted == Posted::Ours {
        (0..segment.layout().world).for_each(|rank| ring(segment.bell(rank)));
    }
    posted
}

#[cold]
fn decode(segment: &Segment, step: &str, seq: u64) -> EnqueueError {
    // SAFETY: inside the mapping; it was written before the word that says so, and never is again.
    let bytes = unsafe { std::slice::from_raw_parts(segment.verdict(), VERDICT_BYTES) };
    match postcard::take_from_bytes(bytes) {
        Ok((Verdict::Aborted { rank, reason }, _)) => {
            EnqueueError::Aborted { step: step.to_owned(), seq, rank, reason }
        }
        Ok((Verdict::Late { step, seq, ranks, waited }, _)) => {
            EnqueueError::Late { step, seq, ranks, waited }
        }
        Ok((Verdict::Lost { step, seq, rank, how }, _)) => {
            EnqueueError::Lost { step, seq, rank, how }
        }
        Ok((Verdict::Mismatch { seq, what }, _)) => EnqueueError::Mismatch { seq, what },
        Err(e) => EnqueueError::Vendor {
            step: step.to_owned(),
            seq,
            call: "reading the group's verdict",
            text: e.to_string(),
        },
    }
}

fn place(error: &EnqueueError) -> (&str, u64) {
    match error {
        EnqueueError::Late { step, seq, .. } | EnqueueError::Lost { step, seq, .. } => (step, *seq),
        EnqueueError::Mismatch { seq, .. } => ("compare the calls", *seq),
        _ => ("run", 0),
    }
}
