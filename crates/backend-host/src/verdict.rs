//! How a group ends when it ends badly: the first rank that gives up says why in the segment, and
//! every other rank repeats that instead of a story of its own.

use crossover_core::backend::EnqueueError;
use crossover_core::verdict::Verdict;

use crate::protocol::{Posted, ring};
use crate::segment::Segment;

/// Posts the error of `rank`, or replaces it by the one that came first. Waits at most for another rank
/// that is in the middle of posting, and not long.
pub(crate) fn settle(segment: &Segment, rank: u32, error: EnqueueError) -> EnqueueError {
    // An abort, or what a watchdog found, was read from the segment.
    if matches!(error, EnqueueError::Aborted { .. } | EnqueueError::Found(_))
        || post(segment, &Verdict::of(&error, rank)) == Posted::Ours
    {
        return error;
    }
    let (step, seq) = place(&error);
    // Who is posting may have died over it: then our own story must do.
    for _ in 0..PATIENCE {
        if let Some(first) = read(segment, rank, step, seq) {
            return first;
        }
        rustix::thread::sched_yield();
    }
    error
}

/// Ends the group for all, unless it has ended before. Never waits.
pub(crate) fn post(segment: &Segment, verdict: &Verdict) -> Posted {
    let bytes = verdict.encode();
    let posted = segment.verdict_word().post(|| {
        // SAFETY: inside the mapping, which has room, and this rank alone was given the right to
        // write here.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), segment.verdict(), bytes.len()) };
    });
    if posted == Posted::Ours {
        (0..segment.layout().world).for_each(|rank| ring(segment.bell(rank)));
    }
    posted
}

/// The verdict, if there is one, for `rank`, which is at `step` of call `seq`.
#[inline]
pub(crate) fn read(segment: &Segment, rank: u32, step: &str, seq: u64) -> Option<EnqueueError> {
    segment.verdict_word().is_written().then(|| decode(segment, rank, step, seq))
}

/// Yields while another rank writes a kilobyte.
const PATIENCE: u32 = 1000;

#[cold]
fn decode(segment: &Segment, rank: u32, step: &str, seq: u64) -> EnqueueError {
    // SAFETY: inside the mapping; it was written before the word that says so, and never is again.
    let bytes = unsafe { std::slice::from_raw_parts(segment.verdict(), Verdict::BYTES) };
    Verdict::decode(bytes, rank).into_error(step, seq)
}

fn place(error: &EnqueueError) -> (&str, u64) {
    match error {
        EnqueueError::Late { step, seq, .. } | EnqueueError::Lost { step, seq, .. } => (step, *seq),
        EnqueueError::Mismatch { seq, .. } => ("compare the calls", *seq),
        _ => ("run", 0),
    }
}
