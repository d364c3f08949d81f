//! Which images belong together: rings of one job, attempt, boot and group. What is left over from
//! before is named, not judged.

use std::collections::{BTreeMap, BTreeSet};

use crossover_core::bootstrap::ranks_in_words;

use crate::find::ENDING;
use crate::image::{Image, Life, Phase};

use super::group::{Group, activity, issued};

/// A job's groups, and what is to be said of rings that are not judged.
pub(super) struct Job<'a> {
    pub(super) name: &'a str,
    pub(super) groups: Vec<Group<'a>>,
    pub(super) notes: Vec<String>,
}

/// Sorts images into jobs, by name.
pub(super) fn jobs(images: &[Image]) -> Vec<Job<'_>> {
    let mut by_name: BTreeMap<&str, Vec<&Image>> = BTreeMap::new();
    for image in images {
        by_name.entry(&image.about.job).or_default().push(image);
    }
    by_name.into_iter().map(|(name, images)| job(name, images)).collect()
}

fn job<'a>(name: &'a str, images: Vec<&'a Image>) -> Job<'a> {
    let mut notes = Vec::new();
    let images = of_newest_attempt(images, &mut notes);
    let images = of_newest_boots(images, &mut notes);
    let groups = without_replaced(groups(images, &mut notes), &mut notes);
    for group in &groups {
        notes.extend(unseen(group));
        notes.extend(lost_records(group));
    }
    Job { name, groups, notes }
}

fn of_newest_attempt<'a>(images: Vec<&'a Image>, notes: &mut Vec<String>) -> Vec<&'a Image> {
    let newest = images.iter().map(|image| image.about.attempt).max().unwrap_or(0);
    keep(images, notes, |image| match image.about.attempt {
        attempt if attempt == newest => None,
        attempt => Some(format!("it is of attempt {attempt}, and the newest is {newest}")),
    })
}

/// Of a node that was started anew, only rings of the boot that was active last count.
fn of_newest_boots<'a>(images: Vec<&'a Image>, notes: &mut Vec<String>) -> Vec<&'a Image> {
    let mut newest: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for image in &images {
        let boot = (activity(image), image.about.process.boot.as_str());
        newest.entry(node(image)).and_modify(|known| *known = boot.max(*known)).or_insert(boot);
    }
    keep(images, notes, |image| {
        let other = newest.get(node(image)).is_some_and(|(_, b)| *b != image.about.process.boot);
        other.then(|| format!("node {} has been started anew since", node(image)))
    })
}

fn keep<'a>(
    mut images: Vec<&'a Image>,
    notes: &mut Vec<String>,
    stale: impl Fn(&Image) -> Option<String>,
) -> Vec<&'a Image> {
    images.retain(|image| match stale(image) {
        Some(why) => {
            let (rank, tag) = (image.about.rank, &image.about.tag);
            notes.push(format!("{} (rank {rank} of `{tag}`) is stale: {why}", image.source));
            false
        }
        None => true,
    });
    images
}

fn groups<'a>(images: Vec<&'a Image>, notes: &mut Vec<String>) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(&str, u64), Group<'a>> = BTreeMap::new();
    for image in images {
        let about = &image.about;
        let group = groups.entry((&about.tag, about.group)).or_insert_with(|| Group {
            tag: &about.tag,
            number: about.group,
            world: 0,
            members: &about.members,
            nodes: &about.nodes,
            images: BTreeMap::new(),
        });
        // A damaged ring may claim any world; what is listed is there.
        let listed = u32::try_from(about.members.len()).unwrap_or(u32::MAX);
        group.world = group.world.max(about.world.min(listed)).max(about.rank.saturating_add(1));
        let older = match group.images.get(&about.rank) {
            Some(known) if known.progress.taken >= image.progress.taken => Some(image),
            _ => group.images.insert(about.rank, image),
        };
        if let Some(older) = older {
            notes.push(format!(
                "{} is left out: there is a newer image of rank {} of `{}`",
                older.source, about.rank, about.tag
            ));
        }
    }
    groups.into_values().collect()
}

/// Without groups whose place another has taken: a job that was started again under its name.
fn without_replaced<'a>(groups: Vec<Group<'a>>, notes: &mut Vec<String>) -> Vec<Group<'a>> {
    let replaced: BTreeSet<u64> = (groups.iter())
        .filter(|old| groups.iter().any(|new| replaces(new, old)))
        .map(|old| old.number)
        .collect();
    let (stale, current): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| replaced.contains(&group.number));
    notes.extend(stale.iter().map(|group| {
        let ranks: Vec<u32> = group.images.keys().copied().collect();
        let (tag, number) = (group.tag, group.number);
        let has = if ranks.len() == 1 { "has a stale ring" } else { "have stale rings" };
        format!(
            "{} of `{tag}` (group {number:x}) {has}: a newer `{tag}` has taken its place",
            ranks_in_words(&ranks)
        )
    }));
    current
}

/// Was `new` formed after `old` had ended? Replicas of one model have groups of the same name that
/// live side by side, so that the name alone says nothing.
fn replaces(new: &Group<'_>, old: &Group<'_>) -> bool {
    let same_name = new.tag == old.tag && new.number != old.number;
    let ended = old.images.values().all(|image| has_ended(image, new));
    let born = new.images.values().map(|image| image.progress.born).min().unwrap_or(0);
    let died = old.images.values().map(|image| activity(image)).max().unwrap_or(u64::MAX);
    same_name && ended && born >= died
}

fn has_ended(image: &Image, new: &Group<'_>) -> bool {
    let over = matches!(image.progress.phase, Phase::Closed | Phase::Failed | Phase::Dropped);
    match image.life {
        Life::Running | Life::Stopped => over,
        Life::Gone => true,
        Life::Unknown => {
            over || new.images.values().all(|other| other.about.process != image.about.process)
        }
    }
}

fn unseen(group: &Group<'_>) -> Vec<String> {
    let seen: BTreeSet<&str> = group.images.keys().map(|rank| group.node(*rank)).collect();
    // A dump, or what is left of one: what could not be seen of a living rank is another matter.
    let are_copies = group.images.values().all(|image| image.source.ends_with(ENDING));
    let why = |node: &str| match seen.contains(node) {
        true if are_copies => "no copy of its ring is here that can be read",
        true => {
            "it has closed the group, or its container does not share the folder of rings with the others"
        }
        false => "no ring of that node is here",
    };
    let told = |rank: u32| {
        let node = group.node(rank);
        let (tag, member) = (group.tag, group.member(rank));
        format!("rank {rank} of `{tag}` ({member} on node {node}) was not seen: {}", why(node))
    };
    group.unseen().into_iter().map(told).collect()
}

/// One record may be torn, since it is just being written; more are a damaged ring.
fn lost_records(group: &Group<'_>) -> Vec<String> {
    let told = |(rank, image): (&u32, &&Image)| {
        let first = image.records.keys().next().copied().unwrap_or(issued(image));
        let expected = issued(image) - first + u64::from(issued(image) > 0);
        let lost = expected.saturating_sub(image.records.len() as u64);
        (lost > 1).then(|| {
            let (tag, source) = (group.tag, &image.source);
            format!("rank {rank} of `{tag}` ({source}): {lost} records are torn or lost")
        })
    };
    group.images.iter().filter_map(told).collect()
}

fn node(image: &Image) -> &str {
    image.about.nodes.get(image.about.rank as usize).map_or("", String::as_str)
}
