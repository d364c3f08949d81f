//! How a group ends when it ends badly: the first rank that gives up says why in the segment, and
//! every other rank repeats that instead of a story of its own.

use crossover_core::backend::EnqueueError;
use crossover_core::verdict::Verdict;

use crate::layout::VERDICT_BYTES;
use crate::protocol::{Posted, ring};
use crate::segment::Segment;

/// Posts the error, or replaces it by the one that came first. Waits at most for another rank
/// that is in the middle of posting, and not long.
pub(crate) fn settle(segment: &Segment, error: EnqueueError) -> EnqueueError {
    // An abort was read from the segment; this backend makes no other errors.
    let Some(verdict) = Verdict::of(&error) else { return error };
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
    post(segment, &Verdict::aborted(rank, reason));
}

/// The verdict, if there is one. `step` and `seq` say where this rank is.
#[inline]
pub(crate) fn read(segment: &Segment, step: &str, seq: u64) -> Option<EnqueueError> {
    segment.verdict_word().is_written().then(|| decode(segment, step, seq))
}

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
        Ok((verdict, _)) => Verdict::into_error(verdict, step, seq),
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
