//! All ranks have enqueued the same, and their devices do not go on.

use crossover_core::bootstrap::ranks_in_words;

use crate::diagnosis::{Class, Verdict};
use crate::image::Phase;

use super::device::{self, Wait};
use super::finding::{at, finding};
use super::group::{Group, failed, front, outstanding};
use super::{advice, life, waits};
use crate::words;

/// Judges devices. None if none waits, or if what they wait for is explained or not known.
pub(super) fn verdict(group: &Group<'_>) -> Option<Verdict> {
    let waits = device::waits(group);
    let lost = group.images.values().any(|image| life::class(group, image).is_some());
    if waits.is_empty() || lost || group.images.values().any(|image| failed(image)) {
        return None;
    }
    let awaited = device::awaited(&waits);
    let of = |is: &dyn Fn(&crate::image::Image) -> bool| -> Vec<u32> {
        let seen = awaited.iter().filter(|rank| group.images.get(rank).is_some_and(|i| is(i)));
        seen.copied().collect()
    };
    let leavers = of(&waits::has_left);
    if !leavers.is_empty() {
        return Some(left(group, &waits, leavers));
    }
    let behind = of(&|image| device::is_watched(group, image));
    match (behind.is_empty(), awaited.is_empty()) {
        (false, _) => Some(behind_verdict(group, &waits, behind)),
        (true, true) => circle(group, &waits),
        // Nobody knows about those.
        (true, false) => None,
    }
}

/// What cannot be told of devices.
pub(super) fn undecided(group: &Group<'_>) -> Vec<String> {
    let waits = device::waits(group);
    let (seen, unseen): (Vec<u32>, Vec<u32>) =
        device::awaited(&waits).into_iter().partition(|rank| group.images.contains_key(rank));
    let silent: Vec<u32> =
        seen.into_iter().filter(|r| !device::is_watched(group, group.images[r])).collect();
    let for_whom = |ranks: &[u32]| {
        let waiting = waits.iter().filter(|w| w.awaited.iter().any(|rank| ranks.contains(rank)));
        let waiting: Vec<u32> = waiting.map(|wait| wait.rank).collect();
        let verb = words::verb(&waiting, "waits", "wait");
        format!(
            "in `{}` {} {verb} for {}",
            group.tag,
            words::devices(&waiting),
            ranks_in_words(ranks)
        )
    };
    let unseen = (!unseen.is_empty()).then(|| {
        let was = words::verb(&unseen, "was", "were");
        format!("{}, which {was} not seen", for_whom(&unseen))
    });
    let silent = (!silent.is_empty()).then(|| {
        format!("{}, whose watchdog does not tell what its device does", for_whom(&silent))
    });
    unseen.into_iter().chain(silent).collect()
}

fn behind_verdict(group: &Group<'_>, waits: &[Wait<'_>], ranks: Vec<u32>) -> Verdict {
    let first = first_for(waits, &ranks);
    let mut verdict = begin(group, Class::DeviceBehind, ranks, first.as_ref());
    let call = first.as_ref().map_or(0, |wait| wait.call);
    let waiting = waiting_for(waits, &verdict.ranks);
    verdict.sentence = format!(
        "in group `{}` {} {} not come to device call {call}: {} {} for {}{}",
        group.tag,
        words::devices(&verdict.ranks),
        words::verb(&verdict.ranks, "has", "have"),
        words::devices(&waiting),
        words::verb(&waiting, "waits", "wait"),
        words::verb(&verdict.ranks, "it", "them"),
        since(&verdict),
    );
    verdict.evidence = evidence(group, waits);
    let waits_for_nobody = words::verb(&verdict.ranks, "waits", "wait");
    verdict.evidence.push(format!(
        "{} {waits_for_nobody} for nobody: other work is ahead in its stream, or its kernel was not \
         launched",
        words::devices(&verdict.ranks)
    ));
    // A host that is still in the call may not have launched it.
    let inside = |rank: &u32| outstanding(group.images[rank]).is_some();
    let inside: Vec<u32> = verdict.ranks.iter().copied().filter(inside).collect();
    if !inside.is_empty() {
        let has = words::verb(&inside, "has", "have");
        verdict.evidence.push(format!("{} {has} not come back from it", ranks_in_words(&inside)));
    }
    verdict.advice = advice::stacks(group, &inside);
    verdict.advice.extend(advice::device_behind(group, &verdict.ranks));
    verdict
}

fn left(group: &Group<'_>, waits: &[Wait<'_>], ranks: Vec<u32>) -> Verdict {
    let first = first_for(waits, &ranks);
    let mut verdict = begin(group, Class::Left, ranks, first.as_ref());
    let how = match group.images[&verdict.ranks[0]].progress.phase {
        Phase::Dropped => "dropped the group without a goodbye",
        _ => "closed the group",
    };
    let waiting = waiting_for(waits, &verdict.ranks);
    verdict.sentence = format!(
        "in group `{}` {} {how}, while {} {} for {}{}",
        group.tag,
        ranks_in_words(&verdict.ranks),
        words::devices(&waiting),
        words::verb(&waiting, "waits", "wait"),
        words::verb(&verdict.ranks, "it", "them"),
        since(&verdict),
    );
    verdict.advice = advice::left(group, &verdict.ranks);
    verdict
}

/// Every device that is waited for waits itself. None if it is not told for whom.
fn circle(group: &Group<'_>, waits: &[Wait<'_>]) -> Option<Verdict> {
    let at = |rank: u32| waits.iter().find(|wait| wait.rank == rank).map(|wait| wait.call);
    // Who is at an earlier call is waited for with reason. What others sent did not come.
    let is_odd = |wait: &Wait<'_>, peer: u32| {
        at(peer).is_some_and(|call| !device::is_before(call, wait.call))
    };
    let mut links = Vec::new();
    for wait in waits {
        let odd = wait.awaited.iter().filter(|peer| is_odd(wait, **peer));
        links.extend(odd.map(|peer| format!("rank {} <- rank {peer}", wait.rank)));
    }
    if links.is_empty() {
        return None;
    }
    let first = first_of(waits.iter());
    let ranks = waits.iter().map(|wait| wait.rank).collect();
    let mut verdict = begin(group, Class::StuckTransport, ranks, first.as_ref());
    let who = match verdict.ranks.len() == group.world as usize {
        true => "all ranks".to_owned(),
        false => ranks_in_words(&verdict.ranks),
    };
    verdict.sentence = format!(
        "in group `{}` the devices of {who} are in a call and wait for one another{}; what does not \
         come: {}",
        group.tag,
        since(&verdict),
        links.join(", ")
    );
    verdict.evidence = evidence(group, waits);
    verdict.advice = advice::transport(group);
    Some(verdict)
}

/// A verdict about a wait. Which record a device is at is not told; it is not after the last that
/// all ranks have.
fn begin(group: &Group<'_>, class: Class, ranks: Vec<u32>, first: Option<&Wait<'_>>) -> Verdict {
    let mut verdict = finding(group, class, ranks);
    if let Some(record) = last_common(group) {
        verdict = at(verdict, record);
        verdict.expected = Some(words::record(record));
    }
    verdict.age_ms = first.map(|wait| wait.age_ms);
    verdict
}

fn last_common<'a>(group: &Group<'a>) -> Option<&'a crate::image::Record> {
    let number = group.images.values().map(|image| front(image)).min()?;
    group.images.values().find_map(|image| image.records.get(&number))
}

fn evidence(group: &Group<'_>, waits: &[Wait<'_>]) -> Vec<String> {
    let mut lines = device::in_words(waits.iter().cloned());
    lines.extend(device::apart(waits));
    lines.extend(last_common(group).map(|record| {
        format!(
            "all ranks have enqueued what is up to {}, {}: it is that or one before",
            words::place(record),
            words::record(record)
        )
    }));
    lines
}

/// Of waits for some of `ranks`: the earliest call, and the longest in it.
fn first_for<'a>(waits: &[Wait<'a>], ranks: &[u32]) -> Option<Wait<'a>> {
    first_of(waits.iter().filter(|wait| wait.awaited.iter().any(|rank| ranks.contains(rank))))
}

fn first_of<'w, 'a: 'w>(waits: impl Iterator<Item = &'w Wait<'a>>) -> Option<Wait<'a>> {
    let earlier = |one: &'w Wait<'a>, other: &'w Wait<'a>| {
        let later = device::is_before(other.call, one.call);
        let shorter = other.call == one.call && other.age_ms > one.age_ms;
        if later || shorter { other } else { one }
    };
    waits.reduce(earlier).cloned()
}

fn waiting_for(waits: &[Wait<'_>], ranks: &[u32]) -> Vec<u32> {
    let for_them = waits.iter().filter(|w| w.awaited.iter().any(|rank| ranks.contains(rank)));
    for_them.map(|wait| wait.rank).collect()
}

fn since(verdict: &Verdict) -> String {
    verdict.age_ms.map_or_else(String::new, |age| format!(", for {}", words::span(age)))
}
