//! Ranks whose histories agree, and which nevertheless do not go on: who waits, and for whom.

use crossover_core::bootstrap::ranks_in_words;

use crate::diagnosis::{Class, Verdict};
use crate::image::{Image, Phase, Progress};

use super::finding::{at, finding};
use super::group::{Group, failed, front, issued, last, next_meeting, outstanding};
use super::{advice, device, device_hang, life};
use crate::words;

/// Ten looks of a watchdog missed: worth a word.
const QUIET_MS: u64 = 1000;

/// Judges a group in which no histories differ. None if nobody waits, or if ranks that are lost or
/// ended explain it.
pub(super) fn verdict(group: &Group<'_>) -> Option<Verdict> {
    let front = group.images.values().map(|image| front(image)).max().unwrap_or(0);
    let behind = |image: &&Image| issued(image) < front;
    let lost = |image: &&Image| life::class(group, image).is_some() || has_left(image);
    let is_leaver =
        |image: &Image| has_left(image) && (behind(&image) || dropped_first(group, image));
    let leavers = ranks_where(group, is_leaver);
    if !leavers.is_empty() {
        return left(group, leavers);
    }
    let absent = ranks_where(group, |image| behind(&image) && !lost(&image));
    let low = |ranks: &[u32]| ranks.iter().map(|rank| issued(group.images[rank])).min();
    let Some(lowest) = low(&absent) else {
        return device_hang::verdict(group).or_else(|| transport(group));
    };
    let gone = ranks_where(group, |image| lost(&image));
    if low(&gone).is_some_and(|gone| gone <= lowest) {
        return None;
    }
    // Who waits with its device for others is late because of them.
    let held_up = |rank: &&u32| device::wait_of(group, **rank).is_some();
    let at_lowest = absent.iter().filter(|rank| issued(group.images[*rank]) == lowest);
    if at_lowest.clone().all(|rank| held_up(&rank)) {
        return device_hang::verdict(group).or_else(|| not_arrived(group, lowest));
    }
    not_arrived(group, lowest)
}

/// What cannot be told because rings are missing.
pub(super) fn undecided(group: &Group<'_>) -> Vec<String> {
    let waiting = ranks_where(group, |image| outstanding(image).is_some());
    let unseen = group.unseen();
    let all = !waiting.is_empty() && waiting.len() == group.images.len() && !unseen.is_empty();
    let of_hosts = all.then(|| {
        format!(
            "all ranks of `{}` that were seen are in calls: whether {} came to theirs is not known",
            group.tag,
            ranks_in_words(&unseen)
        )
    });
    of_hosts.into_iter().chain(device_hang::undecided(group)).collect()
}

fn ranks_where(group: &Group<'_>, is: impl Fn(&Image) -> bool) -> Vec<u32> {
    group.images.iter().filter(|(_, image)| is(image)).map(|(rank, _)| *rank).collect()
}

pub(super) fn has_left(image: &Image) -> bool {
    matches!(image.progress.phase, Phase::Closed | Phase::Dropped)
}

/// It dropped the group while others went on, and that ended it for them, whether or not they have come to another call.
fn dropped_first(group: &Group<'_>, image: &Image) -> bool {
    let Progress { phase: Phase::Dropped, entered: dropped @ 1.., .. } = image.progress else {
        return false;
    };
    let node = |image: &Image| group.node(image.about.rank);
    let mut others = group.images.values().filter(|other| failed(other)).peekable();
    // Clocks of one node alone agree.
    others.peek().is_some()
        && others.all(|other| node(other) == node(image) && other.progress.entered > dropped)
}

/// Ranks left without a record of it, and others have come further. After an error on them, or
/// beside a lost process, that is no cause.
fn left(group: &Group<'_>, ranks: Vec<u32>) -> Option<Verdict> {
    let lost = group.images.values().any(|image| life::class(group, image).is_some());
    if lost || ranks.iter().any(|rank| failed(group.images[rank])) {
        return None;
    }
    let lowest = ranks.iter().map(|rank| issued(group.images[rank])).min()?;
    let waiting = ranks_where(group, |image| issued(image) > lowest && !has_left(image));
    let Some(mut verdict) = missed(group, Class::Left, ranks.clone(), lowest) else {
        return left_between(group, ranks);
    };
    let how = match group.images[&verdict.ranks[0]].progress.phase {
        Phase::Dropped => "dropped the group without a goodbye",
        _ => "closed the group",
    };
    verdict.sentence = format!(
        "in group `{}` {} {how}, while {} {} in {}",
        group.tag,
        ranks_in_words(&verdict.ranks),
        ranks_in_words(&waiting),
        words::verb(&waiting, "is", "are"),
        verdict.expected.as_deref().unwrap_or("a later call"),
    );
    verdict.advice = advice::left(group, &verdict.ranks);
    Some(verdict)
}

/// Nobody has come further than those that dropped the group, and the others found it ended.
fn left_between(group: &Group<'_>, ranks: Vec<u32>) -> Option<Verdict> {
    let ended = ranks_where(group, failed);
    let mut verdict = finding(group, Class::Left, ranks);
    let record = last(group.images.get(verdict.ranks.first()?)?)?;
    verdict = at(verdict, record);
    verdict.sentence = format!(
        "in group `{}` {} dropped the group without a goodbye after {}, {}, and it ended for {}",
        group.tag,
        ranks_in_words(&verdict.ranks),
        words::place(record),
        words::record(record),
        ranks_in_words(&ended),
    );
    verdict.advice = advice::left(group, &verdict.ranks);
    Some(verdict)
}

/// The record after `lowest` that `ranks` lack, and for how long the others have had it.
fn missed(group: &Group<'_>, class: Class, ranks: Vec<u32>, lowest: u64) -> Option<Verdict> {
    let images = || group.images.values().copied();
    let number = images().filter_map(|image| next_meeting(image, lowest)).min()?;
    let mut verdict = finding(group, class, ranks);
    verdict.number = Some(number);
    let record = images().find_map(|image| image.records.get(&number));
    if let Some(record) = record {
        verdict = at(verdict, record);
        verdict.expected = Some(words::record(record));
    }
    verdict.age_ms = images().filter_map(|image| group.record_age_ms(image, number)).max();
    Some(verdict)
}

fn not_arrived(group: &Group<'_>, lowest: u64) -> Option<Verdict> {
    let late = |image: &Image| {
        issued(image) == lowest && life::class(group, image).is_none() && !has_left(image)
    };
    let ranks = without_held_up(group, ranks_where(group, late));
    // Who failed inside a call did not keep others waiting: others may well have waited for it.
    let failed_inside = |rank: &u32| {
        let image = group.images[rank];
        failed(image) && outstanding(image).is_some()
    };
    if ranks.iter().any(failed_inside) {
        return None;
    }
    let mut verdict = missed(group, Class::NotArrived, ranks, lowest)?;
    let number = verdict.number?;
    let waiting = ranks_where(group, |i| issued(i) >= number && i.progress.finished < number);
    let there = ranks_where(group, |i| issued(i) >= number);
    let over = verdict.ranks.iter().all(|rank| failed(group.images[rank]));
    let place = group.images.values().find_map(|image| image.records.get(&number));
    let place = place.map_or_else(|| format!("record {number}"), words::place);
    let since = verdict.age_ms.map_or_else(String::new, |age| format!(" for {}", words::span(age)));
    let others = match (over, waiting.is_empty()) {
        (true, _) => format!("{} waited there", ranks_in_words(&there)),
        (false, false) => format!(
            "{} {} there{since}",
            ranks_in_words(&waiting),
            words::verb(&waiting, "waits", "wait")
        ),
        (false, true) => format!(
            "{} {} made it{since}",
            ranks_in_words(&there),
            words::verb(&there, "has", "have")
        ),
    };
    verdict.sentence = format!(
        "in group `{}` {} {} not arrived at {place}{}{}: {others}",
        group.tag,
        ranks_in_words(&verdict.ranks),
        match over {
            true => "had",
            false => words::verb(&verdict.ranks, "has", "have"),
        },
        verdict.expected.as_ref().map_or("", |_| ", "),
        verdict.expected.as_deref().unwrap_or(""),
    );
    verdict.evidence =
        verdict.ranks.iter().flat_map(|rank| lateness(group, *rank, &verdict)).collect();
    let between = ranks_where(group, |i| issued(i) > lowest && issued(i) < number);
    if !between.is_empty() {
        let has = words::verb(&between, "is", "are");
        verdict.evidence.push(format!("{} {has} on the way to it", ranks_in_words(&between)));
    }
    verdict.advice = advice::stacks(group, &verdict.ranks);
    Some(verdict)
}

/// Of ranks that are late together, those that do not wait for one of them with their device.
fn without_held_up(group: &Group<'_>, ranks: Vec<u32>) -> Vec<u32> {
    let wait = |rank: &u32| device::wait_of(group, *rank);
    let free: Vec<u32> = ranks.iter().copied().filter(|rank| wait(rank).is_none()).collect();
    let held_up = |rank: &u32| {
        wait(rank).is_some_and(|wait| wait.awaited.iter().any(|peer| free.contains(peer)))
    };
    ranks.into_iter().filter(|rank| !held_up(rank)).collect()
}

/// What a late rank did last.
fn lateness(group: &Group<'_>, rank: u32, verdict: &Verdict) -> Vec<String> {
    let image = group.images[&rank];
    let mut lines = Vec::new();
    let done = match outstanding(image) {
        Some(_) => "is still inside",
        None => "came back from",
    };
    lines.push(match last(image) {
        Some(record) => {
            format!("rank {rank} {done} {}, {}", words::place(record), words::record(record))
        }
        None => format!("rank {rank} has made no call that is kept"),
    });
    let step = image.progress.step;
    if verdict.step.is_some_and(|expected| expected > 0 && step > expected) {
        lines.push(format!("rank {rank} is in step {step} already: it left this call out"));
    }
    if let Some(still) = group.still_ms(image).filter(|still| *still >= QUIET_MS) {
        let still = words::span(still);
        lines.push(format!("rank {rank} gave no sign of life in the last {still}"));
    }
    if let Some(end) = &image.progress.end {
        lines.push(format!("rank {rank} ended with: {end}"));
    }
    lines
}

/// All have come, and some have not come back.
fn transport(group: &Group<'_>) -> Option<Verdict> {
    let broken =
        |image: &Image| failed(image) || life::class(group, image).is_some() || has_left(image);
    let inside = ranks_where(group, |image| outstanding(image).is_some());
    if inside.is_empty() || !group.unseen().is_empty() || group.images.values().any(|i| broken(i)) {
        return None;
    }
    let number = inside.iter().filter_map(|rank| outstanding(group.images[rank])).min()?;
    let mut verdict = finding(group, Class::StuckTransport, inside);
    verdict.number = Some(number);
    let record = group.images.values().find_map(|image| image.records.get(&number));
    if let Some(record) = record {
        verdict = at(verdict, record);
        verdict.expected = Some(words::record(record));
    }
    // It began when the last rank came.
    verdict.age_ms = group.images.values().filter_map(|i| group.record_age_ms(i, number)).min();
    let since = verdict.age_ms.map_or_else(String::new, |age| format!(" for {}", words::span(age)));
    let place = record.map_or_else(|| format!("record {number}"), words::place);
    let back = match verdict.ranks.len() == group.images.len() {
        true => "none has come back".to_owned(),
        false => {
            let have = words::verb(&verdict.ranks, "has", "have");
            format!("{} {have} not come back", ranks_in_words(&verdict.ranks))
        }
    };
    verdict.sentence = format!(
        "in group `{}` all ranks are in {place}{}{}, and {back}{since}",
        group.tag,
        verdict.expected.as_ref().map_or("", |_| ", "),
        verdict.expected.as_deref().unwrap_or(""),
    );
    verdict.evidence =
        vec!["all ranks have the same history and have come to this call".to_owned()];
    verdict.advice = advice::transport(group);
    Some(verdict)
}
