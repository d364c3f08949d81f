//! From rings to verdicts. A pure function: it reads no clock, no file and no memory but the
//! images that it is given.
//!
//! [`jobs`] sorts images into groups, [`history`] finds where histories part, [`odd`] and
//! [`branch`] say in what; [`life`], [`waits`] and [`deadlock`] judge ranks that agree and do not
//! go on, [`device`] and [`device_hang`] their devices; [`ended`] quotes. [`twice`] compares two
//! looks.

mod advice;
mod branch;
mod config;
mod deadlock;
mod device;
mod device_hang;
mod ended;
mod finding;
mod group;
mod history;
mod jobs;
mod life;
mod odd;
mod precedent;
mod twice;
mod waits;

use crate::diagnosis::{Class, Diagnosis, Verdict};
use crate::image::Image;

use group::{Group, outstanding};
use jobs::Job;

pub(crate) use device::state_in_words;
pub use twice::analyse_twice;

/// Judges images of one moment: a diagnosis for each job, by name.
///
/// Ranks of a healthy group are in calls and a few records apart at any moment, so that waits are
/// always found; their age tells whether they mean anything
/// ([`Diagnosis::patient`], [`analyse_twice`]).
pub fn analyse(images: &[Image]) -> Vec<Diagnosis> {
    jobs::jobs(images).into_iter().map(judge).collect()
}

fn judge(job: Job<'_>) -> Diagnosis {
    let Job { name, groups, mut notes } = job;
    let mut verdicts: Vec<Verdict> = Vec::new();
    // A process has a rank in many groups: it is named where others wait for it.
    let mut order: Vec<&Group<'_>> = groups.iter().collect();
    order.sort_by_key(|group| !group.images.values().any(|image| outstanding(image).is_some()));
    for group in order {
        let found = of_group(group);
        if found.iter().all(|verdict| verdict.class == Class::ConfigDivergence) {
            notes.extend(waits::undecided(group));
        }
        for verdict in found {
            merge(&groups, &mut verdicts, verdict);
        }
    }
    let circles = deadlock::circles(&groups);
    verdicts.retain(|verdict| !circles.iter().any(|circle| explains(&groups, circle, verdict)));
    verdicts.extend(circles.into_iter().map(|circle| circle.verdict));
    let mut verdicts: Vec<(bool, Verdict)> =
        verdicts.into_iter().map(|verdict| follow(&groups, verdict)).collect();
    verdicts.sort_by_key(|(follows, verdict)| (verdict.class, *follows));
    let verdicts = verdicts.into_iter().map(|(_, verdict)| verdict).collect();
    let groups = groups.iter().map(Group::state).collect();
    Diagnosis { job: name.to_owned(), verdicts, groups, notes }
}

fn of_group(group: &Group<'_>) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = config::divergence(group).into_iter().collect();
    let difference = history::first_difference(group);
    let mut parted = difference.and_then(|difference| odd::verdict(group, &difference));
    let waits = || waits::verdict(group);
    match &mut parted {
        // What ranks wait for after they have parted follows from it.
        Some(verdict) if verdict.effect.is_none() && are_side_by_side(group, verdict.class) => {
            verdict.effect = waits().map(Box::new);
        }
        _ => {}
    }
    let waits = if parted.is_none() { waits() } else { None };
    verdicts.extend(parted);
    verdicts.extend(life::verdicts(group));
    verdicts.extend(waits);
    if verdicts.iter().all(|verdict| verdict.class == Class::ConfigDivergence) {
        verdicts.extend(ended::verdict(group));
    }
    // Who is named for another reason is waited for as well.
    let of_hosts = |verdict: &&mut Verdict| {
        let by_devices = [Class::DeviceBehind, Class::StuckTransport, Class::ConfigDivergence];
        !by_devices.contains(&verdict.class)
    };
    for verdict in verdicts.iter_mut().filter(of_hosts) {
        verdict.evidence.extend(device::evidence(group, &verdict.ranks));
    }
    verdicts
}

/// Do records of one number belong together though histories differ? Only then they tell who waits.
fn are_side_by_side(group: &Group<'_>, parted: Class) -> bool {
    let front = group.images.values().map(|image| group::issued(image)).min().unwrap_or(0);
    let mut there = group.images.values().map(|image| {
        let record = image.records.get(&front)?;
        Some((record.seq, record.what))
    });
    let first = there.next().flatten();
    match parted {
        Class::StateDrift => true,
        Class::DivergedBeforeWindow => first.is_some() && there.all(|other| other == first),
        _ => false,
    }
}

/// Adds a verdict; of a process that is lost in several groups there is one.
fn merge(groups: &[Group<'_>], verdicts: &mut Vec<Verdict>, verdict: Verdict) {
    let of_process =
        matches!(verdict.class, Class::CrashedRank | Class::StoppedRank | Class::Frozen);
    let same = verdicts.iter_mut().find(|known| {
        of_process
            && known.class == verdict.class
            && processes(groups, known) == processes(groups, &verdict)
    });
    match same {
        Some(known) => known.evidence.push(format!(
            "the same in group `{}`: {}",
            verdict.tag,
            crossover_core::bootstrap::ranks_in_words(&verdict.ranks)
        )),
        None => verdicts.push(verdict),
    }
}

fn processes<'a>(groups: &'a [Group<'_>], verdict: &Verdict) -> Vec<&'a crate::about::Process> {
    let group = groups.iter().find(|group| group.number == verdict.group);
    let images = group
        .into_iter()
        .flat_map(|group| verdict.ranks.iter().filter_map(|rank| group.images.get(rank)));
    images.map(|image| &image.about.process).collect()
}

fn explains(groups: &[Group<'_>], circle: &deadlock::Circle, verdict: &Verdict) -> bool {
    let explained = |rank: &u32| {
        let mut known = circle.explains.iter();
        known.any(|(group, awaited)| groups[*group].number == verdict.group && awaited == rank)
    };
    let follows = match verdict.class {
        Class::NotArrived | Class::DeviceBehind => true,
        // Who gives up a call of the circle leaves the other groups as well.
        Class::Left => circle.is_over,
        _ => false,
    };
    follows && verdict.ranks.iter().any(explained)
}

/// A rank that has not come because it waits in another group is no cause.
fn follow(groups: &[Group<'_>], mut verdict: Verdict) -> (bool, Verdict) {
    if !matches!(verdict.class, Class::NotArrived | Class::DeviceBehind) {
        return (false, verdict);
    }
    let elsewhere = deadlock::elsewhere(groups, &verdict);
    let follows = !elsewhere.is_empty();
    verdict.evidence.extend(elsewhere);
    (follows, verdict)
}
