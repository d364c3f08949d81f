//! Processes that are gone, stopped or frozen.

use crossover_core::bootstrap::ranks_in_words;

use crate::diagnosis::{Class, Verdict};
use crate::image::{Image, Life, Phase};

use super::advice;
use super::finding::{at, finding};
use super::group::{Group, failed, issued, last, outstanding};
use crate::words;

/// Watchdogs look every 100 ms. Fifty looks missed is no scheduler's doing on a machine that
/// still serves.
const FROZEN_MS: u64 = 5000;

/// Which way a rank cannot go on.
pub(super) fn class(group: &Group<'_>, image: &Image) -> Option<Class> {
    let alive = matches!(image.progress.phase, Phase::Open | Phase::Committing | Phase::Closing);
    match image.life {
        _ if !alive => None,
        Life::Gone => Some(Class::CrashedRank),
        Life::Stopped => Some(Class::StoppedRank),
        // Records without looks are those of a process that could have no watchdog.
        Life::Running if group.still_ms(image)? >= FROZEN_MS => Some(Class::Frozen),
        Life::Running | Life::Unknown => None,
    }
}

/// A verdict for each class that some rank of the group is in.
pub(super) fn verdicts(group: &Group<'_>) -> Vec<Verdict> {
    let classes = [Class::CrashedRank, Class::StoppedRank, Class::Frozen];
    let of_class = |wanted: Class| {
        let with = group.images.iter().filter(|(_, image)| class(group, image) == Some(wanted));
        let ranks: Vec<u32> = with.map(|(rank, _)| *rank).collect();
        (!ranks.is_empty()).then(|| verdict(group, wanted, ranks))
    };
    classes.into_iter().filter_map(of_class).collect()
}

fn verdict(group: &Group<'_>, class: Class, ranks: Vec<u32>) -> Verdict {
    let images: Vec<&Image> = ranks.iter().map(|rank| group.images[rank]).collect();
    let named: Vec<String> =
        ranks.iter().map(|rank| format!("rank {rank} ({})", group.member(*rank))).collect();
    let is = words::verb(&ranks, "is", "are");
    let what = match class {
        Class::CrashedRank => "gone without a goodbye",
        Class::StoppedRank => "stopped, by a signal or a debugger",
        _ => "there, but not even its watchdog runs",
    };
    let first = images[0];
    let latest = last(first);
    let seen = match latest {
        Some(record) if ranks.len() == 1 => {
            format!("; its last record is {}, {}", words::place(record), words::record(record))
        }
        _ => String::new(),
    };
    let mut verdict = finding(group, class, ranks.clone());
    if let Some(record) = latest {
        verdict = at(verdict, record);
    }
    verdict.sentence = format!("in group `{}` {} {is} {what}{seen}", group.tag, named.join(", "));
    verdict.evidence =
        images.iter().zip(&ranks).map(|(i, rank)| sign_of_life(group, *rank, i)).collect();
    verdict.evidence.extend(waiting(group, &ranks));
    verdict.advice = advice::life(group, class, &ranks);
    verdict.age_ms = images.iter().filter_map(|image| group.beat_age_ms(image)).max();
    verdict
}

fn sign_of_life(group: &Group<'_>, rank: u32, image: &Image) -> String {
    let place = match outstanding(image) {
        Some(number) => format!("inside record {number}"),
        None => format!("between calls, after record {}", issued(image)),
    };
    match group.beat_age_ms(image) {
        Some(age) => format!("rank {rank} was {place}; last sign of life {} ago", words::span(age)),
        None => format!("rank {rank} was {place}"),
    }
}

/// Who else is in a call, and waits there or has given up.
fn waiting(group: &Group<'_>, except: &[u32]) -> Vec<String> {
    let inside = |gave_up: bool| -> Vec<u32> {
        let others = group.images.iter().filter(|(rank, _)| !except.contains(rank));
        let inside = others.filter(|(_, i)| outstanding(i).is_some() && failed(i) == gave_up);
        inside.map(|(rank, _)| *rank).collect()
    };
    let (waiting, failed) = (inside(false), inside(true));
    let told = |ranks: &[u32], verb: &str| {
        (!ranks.is_empty()).then(|| format!("{} {verb} in calls", ranks_in_words(ranks)))
    };
    let waits = words::verb(&waiting, "waits", "wait");
    [told(&waiting, waits), told(&failed, "failed")].into_iter().flatten().collect()
}
