//! One group's rings side by side, and what is asked of a ring again and again.

use std::collections::BTreeMap;

use crate::diagnosis::{GroupState, RankState};
use crate::image::{Image, Life, Phase, Record, What};

use super::device;
use crate::words;

/// A group, and the rings that were found of it.
pub(super) struct Group<'a> {
    pub(super) tag: &'a str,
    pub(super) number: u64,
    pub(super) world: u32,
    /// Every rank's process, as `host:pid`.
    pub(super) members: &'a [String],
    /// Every rank's node.
    pub(super) nodes: &'a [String],
    /// What was found, by rank.
    pub(super) images: BTreeMap<u32, &'a Image>,
}

impl<'a> Group<'a> {
    /// Ranks whose ring was not found.
    pub(super) fn unseen(&self) -> Vec<u32> {
        (0..self.world).filter(|rank| !self.images.contains_key(rank)).collect()
    }

    /// A rank's process, as `host:pid`.
    pub(super) fn member(&self, rank: u32) -> &'a str {
        self.members.get(rank as usize).map_or("an unknown process", String::as_str)
    }

    /// A rank's node.
    pub(super) fn node(&self, rank: u32) -> &'a str {
        self.nodes.get(rank as usize).map_or("an unknown node", String::as_str)
    }

    /// When an image was taken, nanoseconds since 1970. A copy in a file is read long after it was
    /// made: of those, when any ring of the group moved last.
    pub(super) fn taken(&self, image: &Image) -> u64 {
        match image.life {
            Life::Unknown => self.images.values().map(|image| activity(image)).max().unwrap_or(0),
            _ => image.progress.taken,
        }
    }

    /// How old the watchdog's last look was, milliseconds. None if there was none.
    pub(super) fn beat_age_ms(&self, image: &Image) -> Option<u64> {
        let age = self.taken(image).saturating_sub(image.progress.beat) / NANOS_PER_MS;
        has_looked(image).then_some(age)
    }

    /// For how long a ring had not moved at all, milliseconds. None without a watchdog.
    pub(super) fn still_ms(&self, image: &Image) -> Option<u64> {
        let still = self.taken(image).saturating_sub(activity(image)) / NANOS_PER_MS;
        has_looked(image).then_some(still)
    }

    /// For how long record `number` had been there when the image was taken, milliseconds.
    pub(super) fn record_age_ms(&self, image: &Image, number: u64) -> Option<u64> {
        let record = image.records.get(&number)?;
        Some(self.taken(image).saturating_sub(record.at) / NANOS_PER_MS)
    }

    /// The group as reports show it.
    pub(super) fn state(&self) -> GroupState {
        let ranks = (0..self.world).map(|rank| self.rank_state(rank)).collect();
        GroupState { tag: self.tag.to_owned(), group: self.number, world: self.world, ranks }
    }

    fn rank_state(&self, rank: u32) -> RankState {
        let image = self.images.get(&rank).copied();
        let progress = image.map(|image| image.progress.clone()).unwrap_or_default();
        RankState {
            rank,
            member: self.member(rank).to_owned(),
            seen: image.is_some(),
            life: image.map(|image| image.life),
            phase: image.map(|image| image.progress.phase),
            issued: image.map_or(0, issued),
            finished: progress.finished,
            step: progress.step,
            last: image.and_then(last).map(words::record),
            end: progress.end,
            device: image.and_then(|image| device::state(self, image)),
            beat_age_ms: image.and_then(|image| self.beat_age_ms(image)),
        }
    }
}

/// The number of a ring's last record. A record is there a moment before it is counted.
pub(super) fn issued(image: &Image) -> u64 {
    let kept = image.records.keys().next_back().copied().unwrap_or(0);
    kept.max(image.progress.issued)
}

/// A ring's last record, if it is kept.
pub(super) fn last(image: &Image) -> Option<&Record> {
    image.records.get(&issued(image))
}

/// The digest of a ring's history up to record `number`, if that is known.
pub(super) fn chain_at(image: &Image, number: u64) -> Option<u64> {
    match image.records.get(&number) {
        Some(record) => Some(record.chain),
        // Of a ring that moves, two words that are read one after the other do not match.
        None if number > 0 && number == issued(image) && !moves(image) => {
            Some(image.progress.chain)
        }
        None => None,
    }
}

fn moves(image: &Image) -> bool {
    image.life == Life::Running && image.progress.phase == Phase::Open
}

/// Peers have to come to it; all else is a note. What is lost may be anything.
fn meets(record: Option<&Record>) -> bool {
    record.is_none_or(|record| record.what != What::State)
}

/// The last of its records that peers have to come to; 0 if there is none.
pub(super) fn front(image: &Image) -> u64 {
    let down = (1..=issued(image)).rev();
    down.into_iter().find(|number| meets(image.records.get(number))).unwrap_or(0)
}

/// The record that this rank is in: it has not come back to its caller.
pub(super) fn outstanding(image: &Image) -> Option<u64> {
    let open = !matches!(image.progress.phase, Phase::Closed | Phase::Dropped);
    let front = front(image);
    (open && front > image.progress.finished).then_some(front)
}

/// The first of its records after `number` that peers have to come to.
pub(super) fn next_meeting(image: &Image, number: u64) -> Option<u64> {
    (number + 1..=issued(image)).find(|number| meets(image.records.get(number)))
}

/// Has a watchdog ever looked? A ring is made with a first look that is nobody's.
fn has_looked(image: &Image) -> bool {
    image.progress.beat > image.progress.born
}

/// When the ring moved last, nanoseconds since 1970; 0 if it never did.
pub(super) fn activity(image: &Image) -> u64 {
    let last = image.records.values().next_back().map_or(0, |record| record.at);
    last.max(image.progress.beat)
}

/// Did the group end badly on this rank? It may have closed or dropped it since.
pub(super) fn failed(image: &Image) -> bool {
    image.progress.phase == Phase::Failed || image.progress.end.is_some()
}

/// Of a millisecond.
pub(super) const NANOS_PER_MS: u64 = 1_000_000;
