//! Who is who in a job of several groups: a rank is a number in its group, a trace of the whole
//! job wants one number a process.

use std::collections::BTreeMap;

use crate::image::Image;

/// A group, and what of it was seen.
pub(super) struct Group<'a> {
    /// Its name in policies.
    pub(super) tag: &'a str,
    /// Its number.
    pub(super) number: u64,
    /// By rank, its number among the job's processes.
    pub(super) places: Vec<u32>,
    /// By rank, its ring; `None` where none was found.
    pub(super) rings: Vec<Option<&'a Image>>,
    /// By rank, its process as `host:pid`.
    pub(super) members: &'a [String],
}

impl<'a> Group<'a> {
    /// The rings that there are, by rank.
    pub(super) fn seen(&self) -> impl Iterator<Item = (usize, &'a Image)> {
        self.rings.iter().enumerate().filter_map(|(rank, ring)| Some((rank, (*ring)?)))
    }
}

/// The groups of a job, the widest first: its ranks are the job's. Processes that are in narrower
/// groups alone have the numbers after those.
pub(super) fn groups(images: &[Image]) -> Vec<Group<'_>> {
    let mut by_number: BTreeMap<u64, Vec<&Image>> = BTreeMap::new();
    for image in images {
        by_number.entry(image.about.group).or_default().push(image);
    }
    let mut found: Vec<Group> = by_number.into_values().map(group).collect();
    found.sort_by_key(|group| (usize::MAX - group.rings.len(), group.tag, group.number));
    let mut numbers = BTreeMap::new();
    for group in &mut found {
        let mut met = BTreeMap::new();
        for (rank, ring) in group.rings.iter().enumerate() {
            // A member is a process, and ranks may be threads of one: the second of a name is
            // another than the first.
            let member = group.members.get(rank).map_or("", String::as_str);
            let nth = met.entry(member).and_modify(|nth| *nth += 1).or_insert(0_u32);
            let unknown = member.is_empty().then_some((group.number, rank));
            let next = numbers.len() as u32;
            group.places.push(*numbers.entry((member, *nth, unknown)).or_insert(next));
            debug_assert!(ring.is_none_or(|image| image.about.rank as usize == rank));
        }
    }
    found
}

/// Of two rings of one rank the one that was looked at last.
fn group(images: Vec<&Image>) -> Group<'_> {
    let about = &images[0].about; // a group is made of an image
    let mut rings: Vec<Option<&Image>> = vec![None; about.world as usize];
    for image in &images {
        if let Some(ring) = rings.get_mut(image.about.rank as usize) {
            let newer = ring.is_none_or(|had: &Image| had.progress.taken < image.progress.taken);
            *ring = if newer { Some(image) } else { *ring };
        }
    }
    Group {
        tag: &about.tag,
        number: about.group,
        places: Vec::new(),
        rings,
        members: &about.members,
    }
}
