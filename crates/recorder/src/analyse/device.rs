//! What kernels wait for, as watchdogs saw it. On devices a call comes back to its caller when it is
//! enqueued, so that only this tells for whom a group of devices waits.

use std::collections::BTreeMap;

use crossover_core::bootstrap::ranks_in_words;

use crate::diagnosis::{DeviceState, RankState};
use crate::image::{Image, Life, Phase};

use super::group::{Group, NANOS_PER_MS, failed};
use crate::words;

/// Ten looks of a watchdog missed: what it did not tell of its device means nothing.
const UNWATCHED_MS: u64 = 1000;

/// One rank's device waits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wait<'a> {
    pub(super) rank: u32,
    /// The call, as its device counts. Counts wrap.
    pub(super) call: u32,
    /// Peers that it waits for. None may be known.
    pub(super) awaited: Vec<u32>,
    pub(super) what: &'a str,
    pub(super) age_ms: u64,
}

/// All waits in a group of ranks that can still go on.
pub(super) fn waits<'a>(group: &Group<'a>) -> Vec<Wait<'a>> {
    group.images.keys().filter_map(|rank| wait_of(group, *rank)).collect()
}

/// What the device of a rank waits for, if the rank can still go on.
pub(super) fn wait_of<'a>(group: &Group<'a>, rank: u32) -> Option<Wait<'a>> {
    let image = *group.images.get(&rank)?;
    let open = matches!(image.progress.phase, Phase::Open | Phase::Committing | Phase::Closing);
    let told = image.progress.device.as_ref()?;
    // What memory says of a rank may be anything.
    let peers = told.awaited.iter().filter(|peer| **peer < group.world && **peer != rank);
    (open && image.life != Life::Gone && !failed(image)).then(|| Wait {
        rank,
        call: told.call as u32,
        awaited: peers.copied().collect(),
        what: &told.what,
        age_ms: group.taken(image).saturating_sub(told.since) / NANOS_PER_MS,
    })
}

/// Ranks that devices wait for and whose own device waits for nobody, whether they were seen or not.
/// The others that are waited for have come to a call, and are held up there themselves.
pub(super) fn awaited(waits: &[Wait<'_>]) -> Vec<u32> {
    let mut ranks: Vec<u32> = waits.iter().flat_map(|wait| wait.awaited.clone()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks.retain(|rank| waits.iter().all(|wait| wait.rank != *rank));
    ranks
}

/// Would its watchdog have told of a wait?
pub(super) fn is_watched(group: &Group<'_>, image: &Image) -> bool {
    group.beat_age_ms(image).is_some_and(|age| age < UNWATCHED_MS)
}

/// Which devices wait for some of `ranks`, a line for each call and what they wait for.
pub(super) fn evidence(group: &Group<'_>, ranks: &[u32]) -> Vec<String> {
    let waits = waits(group).into_iter();
    in_words(waits.filter(|wait| wait.awaited.iter().any(|rank| ranks.contains(rank))))
}

/// Waits in words, equal ones in one line.
pub(super) fn in_words<'a>(waits: impl Iterator<Item = Wait<'a>>) -> Vec<String> {
    let mut alike: BTreeMap<_, (Vec<u32>, u64)> = BTreeMap::new();
    for wait in waits {
        let (ranks, age) = alike.entry((wait.call, wait.awaited, wait.what)).or_default();
        ranks.push(wait.rank);
        *age = wait.age_ms.max(*age);
    }
    let mut lines = Vec::new();
    for ((call, awaited, what), (ranks, age)) in alike {
        let verb = words::verb(&ranks, "waits", "wait");
        let told = words::device_wait(&awaited, what, age, call);
        lines.push(format!("{} {verb} {told}", words::devices(&ranks)));
    }
    lines
}

/// Ranks of equal histories whose devices are at different calls.
pub(super) fn apart(waits: &[Wait<'_>]) -> Option<String> {
    let mut calls: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for wait in waits {
        calls.entry(wait.call).or_default().push(wait.rank);
    }
    let at = |(call, ranks): (&u32, &Vec<u32>)| {
        format!("{} at device call {call}", ranks_in_words(ranks))
    };
    (calls.len() > 1).then(|| {
        let at: Vec<String> = calls.iter().map(at).collect();
        format!(
            "histories are equal, and devices are at different calls, in one graph or in calls that \
             follow one another: {}",
            at.join(", ")
        )
    })
}

/// Is call `one` before `other`? Counts wrap.
pub(super) fn is_before(one: u32, other: u32) -> bool {
    one != other && other.wrapping_sub(one) <= u32::MAX / 2
}

/// A rank's wait as reports show it.
pub(super) fn state(group: &Group<'_>, image: &Image) -> Option<DeviceState> {
    let told = image.progress.device.as_ref()?;
    Some(DeviceState {
        call: told.call,
        awaited: told.awaited.clone(),
        what: told.what.clone(),
        age_ms: group.taken(image).saturating_sub(told.since) / NANOS_PER_MS,
    })
}

/// "its device waits for rank 2, data, for 3.1 s, device call 123", for tables.
pub(crate) fn state_in_words(rank: &RankState) -> Option<String> {
    let wait = rank.device.as_ref()?;
    let told = words::device_wait(&wait.awaited, &wait.what, wait.age_ms, wait.call as u32);
    Some(format!("rank {}: its device waits {told}", rank.rank))
}
