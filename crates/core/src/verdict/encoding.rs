//! A verdict as it lies in memory that ranks share and in messages: the same number of bytes for each,
//! which say what they are and prove it.
//!
//! ```text
//! 0    version        u8
//! 1    kind           u8, and whether it is of the whole group, and found by the watchdog
//! 2    runs           u16, how many
//! 4    step           u16, its bytes
//! 6    text           u16, its bytes
//! 8    call           u64
//! 16   waited         u64, nanoseconds
//! 24   rank           u32
//! 28   check          u32, of all other bytes
//! 32   ranks          32 runs of consecutive ones: the first, and how many, u32 each
//! 288  step and text  UTF-8, one behind the other
//! ```
//!
//! Numbers are little-endian, and what a kind does not have is zero. Texts too long are cut.

use std::time::Duration;

use super::{Verdict, cut};

const VERSION: u8 = 1;
const ABORTED: u8 = 0;
const LATE: u8 = 1;
const LOST: u8 = 2;
const MISMATCH: u8 = 3;
const WHOLE: u8 = 0x80;
const FOUND: u8 = 0x40;

const CHECK: usize = 28;
const RUNS: usize = 32;
const RUN: usize = 2 * size_of::<u32>();
/// Of ranks that are late there are few, or all but few: of more than so many runs the rest is cut.
const MOST_RUNS: usize = 32;
const TEXTS: usize = RUNS + MOST_RUNS * RUN;
const ROOM: usize = Verdict::BYTES - TEXTS;
/// More ranks than a group has: a sum of runs beyond is no list of ranks.
const MOST_RANKS: u64 = 1 << 20; // size: of any group

impl Verdict {
    /// Bytes of an encoded verdict.
    pub const BYTES: usize = 1536; // size: fits half a page, with an abort's longest reason

    /// As bytes, for [`Verdict::decode`].
    pub fn encode(&self) -> [u8; Verdict::BYTES] {
        let (verdict, marks) = marked(self);
        let fields = Fields::of(verdict);
        let mut bytes = [0; Verdict::BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        // The text has half of the room, and what the step leaves.
        let step = cut(fields.step, ROOM - fields.text.len().min(ROOM / 2));
        let text = cut(fields.text, ROOM - step.len());
        let runs = runs(fields.ranks);
        put(0, &[VERSION, fields.kind | marks]);
        put(2, &(runs.len() as u16).to_le_bytes());
        put(4, &(step.len() as u16).to_le_bytes());
        put(6, &(text.len() as u16).to_le_bytes());
        put(8, &fields.seq.to_le_bytes());
        put(16, &fields.waited.to_le_bytes());
        put(24, &fields.rank.to_le_bytes());
        for (nth, (first, count)) in runs.into_iter().enumerate() {
            put(RUNS + nth * RUN, &first.to_le_bytes());
            put(RUNS + nth * RUN + size_of::<u32>(), &count.to_le_bytes());
        }
        put(TEXTS, step.as_bytes());
        put(TEXTS + step.len(), text.as_bytes());
        let check = check(&bytes);
        bytes[CHECK..RUNS].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// What these bytes say, as [`Verdict::encode`] wrote them; what is behind them is left alone. That a
    /// group has ended is known by other means: bytes that are no verdict, because who wrote them
    /// died over it or is of another version, are an abort by `blamed`.
    pub fn decode(bytes: &[u8], blamed: u32) -> Verdict {
        let unread = || Verdict::aborted(blamed, "why the group ended cannot be read");
        read(bytes).unwrap_or_else(unread)
    }
}

/// What there is to write.
#[derive(Default)]
struct Fields<'a> {
    kind: u8,
    seq: u64,
    waited: u64,
    rank: u32,
    ranks: &'a [u32],
    step: &'a str,
    text: &'a str,
}

impl Fields<'_> {
    fn of(verdict: &Verdict) -> Fields<'_> {
        match verdict {
            Verdict::Aborted { rank, reason } => {
                Fields { kind: ABORTED, rank: *rank, text: reason, ..Fields::default() }
            }
            Verdict::Late { step, seq, ranks, waited } => {
                let waited = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
                Fields { kind: LATE, seq: *seq, waited, ranks, step, ..Fields::default() }
            }
            Verdict::Lost { step, seq, rank, how } => {
                Fields { kind: LOST, seq: *seq, rank: *rank, step, text: how, ..Fields::default() }
            }
            Verdict::Mismatch { seq, what } => {
                Fields { kind: MISMATCH, seq: *seq, text: what, ..Fields::default() }
            }
            Verdict::Whole(verdict) | Verdict::Found(verdict) => Fields::of(verdict),
        }
    }
}

/// The verdict itself, and its marks. A part of a part ends as a part does: one mark tells that.
fn marked(verdict: &Verdict) -> (&Verdict, u8) {
    let with = |(verdict, marks), mark| (verdict, marks | mark);
    match verdict {
        Verdict::Whole(verdict) => with(marked(verdict), WHOLE),
        Verdict::Found(verdict) => with(marked(verdict), FOUND),
        other => (other, 0),
    }
}

fn read(bytes: &[u8]) -> Option<Verdict> {
    let bytes: &[u8; Verdict::BYTES] = bytes.first_chunk()?;
    let is_sound = bytes[0] == VERSION && word(bytes, CHECK) == check(bytes);
    let lens = [half(bytes, 4), half(bytes, 6)];
    if !is_sound || lens[0] + lens[1] > ROOM {
        return None;
    }
    let (step, text) = bytes[TEXTS..][..lens[0] + lens[1]].split_at(lens[0]);
    let owned = |text: &[u8]| std::str::from_utf8(text).ok().map(str::to_owned);
    let (step, text) = (owned(step)?, owned(text)?);
    let (seq, rank) = (long(bytes, 8), word(bytes, 24));
    let verdict = match bytes[1] & !(WHOLE | FOUND) {
        ABORTED => Verdict::Aborted { rank, reason: text },
        LATE => {
            let waited = Duration::from_nanos(long(bytes, 16));
            Verdict::Late { step, seq, ranks: ranks(bytes)?, waited }
        }
        LOST => Verdict::Lost { step, seq, rank, how: text },
        MISMATCH => Verdict::Mismatch { seq, what: text },
        _ => return None,
    };
    let is = |mark| bytes[1] & mark != 0;
    let verdict = if is(FOUND) { Verdict::Found(Box::new(verdict)) } else { verdict };
    Some(if is(WHOLE) { verdict.of_the_whole() } else { verdict })
}

/// Ranks as runs of consecutive ones, in their order.
fn runs(ranks: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        let is_next = |(first, count): &&mut (u32, u32)| first.checked_add(*count) == Some(*rank);
        match runs.last_mut().filter(is_next) {
            Some((_, count)) => *count += 1,
            None => runs.push((*rank, 1)),
        }
    }
    runs.truncate(MOST_RUNS);
    runs
}

fn ranks(bytes: &[u8; Verdict::BYTES]) -> Option<Vec<u32>> {
    let (count, mut total, mut ranks) = (half(bytes, 2), 0, Vec::new());
    if count > MOST_RUNS {
        return None;
    }
    for at in (RUNS..).step_by(RUN).take(count) {
        let (first, count) = (word(bytes, at), word(bytes, at + size_of::<u32>()));
        total += u64::from(count);
        if total > MOST_RANKS {
            return None;
        }
        ranks.extend(first..first.checked_add(count)?);
    }
    Some(ranks)
}

/// Of all bytes but its own.
fn check(bytes: &[u8; Verdict::BYTES]) -> u32 {
    let mut others = *bytes;
    others[CHECK..RUNS].fill(0);
    xxhash_rust::xxh3::xxh3_64(&others) as u32
}

fn half(bytes: &[u8; Verdict::BYTES], at: usize) -> usize {
    u16::from_le_bytes([bytes[at], bytes[at + 1]]).into()
}

fn word(bytes: &[u8; Verdict::BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8; Verdict::BYTES], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests;
