//! Waits over several groups: a process that is waited for in one group may itself wait in
//! another. A circle of such waits never ends.

use crossover_core::bootstrap::ranks_in_words;
use crossover_core::settings::HOST_DEVICE;

use crate::about::Process;
use crate::diagnosis::{Class, Verdict};
use crate::image::{Image, Life};

use super::finding::{at, finding};
use super::group::{Group, failed, front, issued, outstanding};
use super::{advice, device};
use crate::words;

/// One rank of a group waits inside a record, or its device in a call, for others that have not come
/// to it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wait {
    group: usize,
    rank: u32,
    number: u64,
    on_device: bool,
}

/// A circle of waits.
pub(super) struct Circle {
    pub(super) verdict: Verdict,
    /// Ranks of groups, by index, that are waited for in it.
    pub(super) explains: Vec<(usize, u32)>,
    /// Has a call of it been given up? Then its processes leave their groups.
    pub(super) is_over: bool,
}

/// Finds every circle of waits once.
pub(super) fn circles(groups: &[Group<'_>]) -> Vec<Circle> {
    let waits = waits(groups);
    let mut taken: Vec<Wait> = Vec::new();
    let mut circles = Vec::new();
    for start in &waits {
        if taken.contains(start) {
            continue;
        }
        if let Some(circle) = circle(groups, &waits, *start) {
            taken.extend(&circle);
            circles.push(describe(groups, &circle));
        }
    }
    circles
}

/// Of ranks that a group waits for: where they wait themselves, in another group.
pub(super) fn elsewhere(groups: &[Group<'_>], verdict: &Verdict) -> Vec<String> {
    let Some(own) = groups.iter().position(|group| group.number == verdict.group) else {
        return Vec::new();
    };
    let waits = waits(groups);
    let told = |rank: &u32| {
        let process = &groups[own].images.get(rank)?.about.process;
        let mut others = waits.iter().filter(|wait| wait.group != own);
        let wait = others.find(|wait| process_of(groups, wait) == process)?;
        Some(format!("rank {rank} is {} and waits {}", named(groups, wait), wants(groups, wait)))
    };
    verdict.ranks.iter().filter_map(told).collect()
}

/// All waits of ranks that can still go on, and those that were given up before the others came.
fn waits(groups: &[Group<'_>]) -> Vec<Wait> {
    let of_group = |(group, rings): (usize, &Group<'_>)| -> Vec<Wait> {
        let able =
            |image: &&Image| !failed(image) && matches!(image.life, Life::Running | Life::Unknown);
        let is_awaiting = |wait: &Wait| {
            !awaited(groups, wait).is_empty() && is_one_rank(groups, process_of(groups, wait))
        };
        // Calls of a rank that has failed are not recorded: whether it came is not known.
        let is_awaiting_well = |wait: &Wait| {
            !failed(rings.images[&wait.rank])
                || awaited(groups, wait).iter().all(|rank| !failed(rings.images[rank]))
        };
        let images = rings.images.iter().filter(|(_, image)| able(image) || failed(image));
        let waits = images.filter_map(|(rank, image)| {
            // Calls on a device come back at once; what is ahead of others waits for them there, where
            // devices do not tell.
            let silent =
                able(image) && image.about.device != HOST_DEVICE && device::waits(rings).is_empty();
            let on_device = silent.then(|| front(image));
            let number = outstanding(image).or(on_device)?;
            Some(Wait { group, rank: *rank, number, on_device: false })
        });
        let hosts: Vec<Wait> = waits.filter(is_awaiting).filter(is_awaiting_well).collect();
        let images = rings.images.iter().filter(|(_, image)| able(image));
        let of_device = images.map(|(rank, image)| Wait {
            group,
            rank: *rank,
            number: front(image),
            on_device: true,
        });
        let devices = of_device.filter(is_awaiting);
        // Who is behind with its host is behind with its device.
        let devices = devices.filter(|wait| hosts.iter().all(|host| host.rank != wait.rank));
        hosts.iter().copied().chain(devices).collect()
    };
    groups.iter().enumerate().flat_map(of_group).collect()
}

/// The ranks of its group that have not come to what it waits in.
fn awaited(groups: &[Group<'_>], wait: &Wait) -> Vec<u32> {
    let rings = &groups[wait.group];
    if wait.on_device {
        let own = device::wait_of(rings, wait.rank).map_or_else(Vec::new, |wait| wait.awaited);
        let mut behind = device::awaited(&device::waits(rings));
        behind.retain(|rank| own.contains(rank) && rings.images.contains_key(rank));
        return behind;
    }
    let images = groups[wait.group].images.iter();
    images.filter(|(_, image)| issued(image) < wait.number).map(|(rank, _)| *rank).collect()
}

fn process_of<'a>(groups: &'a [Group<'_>], wait: &Wait) -> &'a Process {
    &groups[wait.group].images[&wait.rank].about.process
}

/// Is it one rank of each group at most? Of ranks that are threads of one process nobody knows which
/// waits where.
fn is_one_rank(groups: &[Group<'_>], process: &Process) -> bool {
    groups.iter().all(|group| {
        group.images.values().filter(|image| image.about.process == *process).count() < 2
    })
}

/// The shortest way from `start` over waits back to it, breadth first.
fn circle(groups: &[Group<'_>], waits: &[Wait], start: Wait) -> Option<Vec<Wait>> {
    let next = |wait: &Wait| -> Vec<Wait> {
        let peers = awaited(groups, wait);
        let processes: Vec<&Process> =
            peers.iter().map(|rank| &groups[wait.group].images[rank].about.process).collect();
        let waits = waits.iter().filter(|other| processes.contains(&process_of(groups, other)));
        waits.copied().collect()
    };
    let mut ways = vec![vec![start]];
    let mut seen = vec![start];
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in &ways {
            for wait in way.last().map(next).unwrap_or_default() {
                // Any wait of the first process closes the circle.
                if process_of(groups, &wait) == process_of(groups, &start) {
                    let closed = wait == start && way.iter().any(|w| w.group != start.group);
                    return closed.then(|| way.clone());
                }
                if !seen.contains(&wait) {
                    seen.push(wait);
                    longer.push([way.as_slice(), &[wait]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

fn describe(groups: &[Group<'_>], circle: &[Wait]) -> Circle {
    let first = &groups[circle[0].group];
    let mut tags: Vec<&str> = Vec::new();
    for wait in circle {
        let tag = groups[wait.group].tag;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    let here = circle.iter().filter(|wait| wait.group == circle[0].group);
    let mut ranks: Vec<u32> = here.map(|wait| wait.rank).collect();
    // In the first group: who waits, and whom the last one of the circle is waited for by.
    ranks.extend(awaited_in_circle(groups, circle, 0));
    ranks.sort_unstable();
    ranks.dedup();
    let mut verdict = finding(first, Class::CrossGroupDeadlock, ranks);
    let image = first.images[&circle[0].rank];
    if let Some(record) = image.records.get(&circle[0].number) {
        verdict = at(verdict, record);
        verdict.expected = Some(words::record(record));
    }
    let ways: Vec<String> = (0..circle.len())
        .map(|at| {
            let wait = &circle[at];
            format!("{} waits {}", named(groups, wait), wants(groups, wait))
        })
        .collect();
    let names: Vec<String> = tags.iter().map(|tag| format!("`{tag}`")).collect();
    verdict.sentence = format!("deadlock over groups {}: {}", names.join(", "), ways.join("; "));
    verdict.evidence = circle.iter().map(|wait| same_process(groups, wait)).collect();
    verdict.advice = advice::deadlock();
    let ages = circle.iter().filter_map(|wait| {
        let group = &groups[wait.group];
        match wait.on_device {
            true => device::wait_of(group, wait.rank).map(|wait| wait.age_ms),
            false => group.record_age_ms(group.images[&wait.rank], wait.number),
        }
    });
    verdict.age_ms = ages.min();
    let awaited = |at: usize| {
        let group = circle[at].group;
        awaited_in_circle(groups, circle, at).into_iter().map(move |rank| (group, rank))
    };
    let is_over = circle.iter().any(|wait| failed(groups[wait.group].images[&wait.rank]));
    Circle { verdict, explains: (0..circle.len()).flat_map(awaited).collect(), is_over }
}

/// Whom wait `at` of a circle waits for, of those in the circle.
fn awaited_in_circle(groups: &[Group<'_>], circle: &[Wait], at: usize) -> Vec<u32> {
    let next = process_of(groups, &circle[(at + 1) % circle.len()]);
    let images = &groups[circle[at].group].images;
    let awaited = awaited(groups, &circle[at]).into_iter();
    awaited.filter(|rank| images[rank].about.process == *next).collect()
}

fn named(groups: &[Group<'_>], wait: &Wait) -> String {
    format!("rank {} of `{}`", wait.rank, groups[wait.group].tag)
}

fn wants(groups: &[Group<'_>], wait: &Wait) -> String {
    let group = &groups[wait.group];
    if wait.on_device {
        let call = device::wait_of(group, wait.rank).map_or(0, |wait| wait.call);
        let awaited = ranks_in_words(&awaited(groups, wait));
        return format!("with its device, in device call {call}, for {awaited}");
    }
    let record = group.images[&wait.rank].records.get(&wait.number);
    let place = record.map_or_else(|| format!("record {}", wait.number), words::place);
    format!("in {place} for {}", ranks_in_words(&awaited(groups, wait)))
}

fn same_process(groups: &[Group<'_>], wait: &Wait) -> String {
    let process = process_of(groups, wait);
    let mut places = Vec::new();
    for group in groups {
        for (rank, image) in &group.images {
            if image.about.process == *process {
                places.push(format!("rank {rank} of `{}`", group.tag));
            }
        }
    }
    let member = groups[wait.group].member(wait.rank);
    format!("{member} is {}", places.join(" and "))
}
