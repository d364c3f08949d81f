//! Where ranks' histories differ first. Record n has the digest of all records up to n, so two
//! histories are equal up to n exactly where their digests at n are.

use std::collections::BTreeMap;

use crate::image::Image;

use super::group::{Group, chain_at};

/// The first record from which histories are known to differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// Its number.
    pub(super) number: u64,
    /// The last record up to which all sides are known to be equal; 0 is the beginning.
    pub(super) equal: u64,
    /// Ranks that have the same history, the most first, of equals that with the lowest rank.
    pub(super) sides: Vec<Vec<u32>>,
}

impl Difference {
    /// Do more ranks go one way than any other?
    pub(super) fn has_majority(&self) -> bool {
        self.sides[0].len() > self.sides[1].len()
    }

    /// Who is odd; where there is no majority, everyone.
    pub(super) fn odd(&self) -> Vec<u32> {
        let skipped = usize::from(self.has_majority());
        let mut ranks: Vec<u32> = self.sides[skipped..].concat();
        ranks.sort_unstable();
        ranks
    }

    /// Is all that came before the difference known to be equal?
    pub(super) fn is_exact(&self) -> bool {
        self.equal + 1 == self.number
    }
}

/// Compares all rings of a group.
pub(super) fn first_difference(group: &Group<'_>) -> Option<Difference> {
    let known = known_numbers(group);
    let readers = group.images.values().filter(|image| has_digests(image)).count();
    let common: Vec<u64> =
        known.iter().filter(|(_, ranks)| **ranks == readers).map(|(number, _)| *number).collect();
    // What all have decides by halves; what only some have is looked at one by one.
    let equal = common.partition_point(|number| sides_at(group, *number).len() < 2);
    let from = if equal == 0 { 0 } else { common[equal - 1] };
    let number = known.range(from..).map(|(n, _)| *n).find(|n| sides_at(group, *n).len() > 1)?;
    let mut sides = sides_at(group, number);
    place_the_rest(group, &known, number, &mut sides);
    sides.sort_by_key(|side| (std::cmp::Reverse(side.len()), side[0]));
    let all_known = |n: &u64| {
        let knows = |rank: &u32| chain_at(group.images[rank], *n).is_some();
        sides.iter().all(|side| side.iter().any(knows))
    };
    let equal = known.range(..number).rev().map(|(n, _)| *n).find(all_known).unwrap_or(0);
    Some(Difference { number, equal, sides })
}

/// Of every number, how many ranks' digest is known.
fn known_numbers(group: &Group<'_>) -> BTreeMap<u64, usize> {
    let mut known = BTreeMap::new();
    for image in group.images.values() {
        let issued = super::group::issued(image);
        let unrecorded = (!image.records.contains_key(&issued)).then_some(issued);
        let numbers = image.records.keys().copied().chain(unrecorded);
        for number in numbers.filter(|number| chain_at(image, *number).is_some()) {
            *known.entry(number).or_default() += 1;
        }
    }
    known
}

fn has_digests(image: &Image) -> bool {
    !image.records.is_empty() || chain_at(image, super::group::issued(image)).is_some()
}

/// Ranks by their digest at `number`, where it is known.
fn sides_at(group: &Group<'_>, number: u64) -> Vec<Vec<u32>> {
    let mut sides: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (rank, image) in &group.images {
        if let Some(chain) = chain_at(image, number) {
            sides.entry(chain).or_default().push(*rank);
        }
    }
    sides.into_values().collect()
}

/// A rank whose record at `number` is lost is on the side that it shares a later digest with.
fn place_the_rest(
    group: &Group<'_>,
    known: &BTreeMap<u64, usize>,
    number: u64,
    sides: &mut [Vec<u32>],
) {
    let placed: Vec<u32> = sides.concat();
    for (rank, image) in group.images.iter().filter(|(rank, _)| !placed.contains(rank)) {
        let shares = |side: &Vec<u32>| {
            known.range(number..).any(|(n, _)| {
                let own = chain_at(image, *n);
                own.is_some() && side.iter().any(|peer| chain_at(group.images[peer], *n) == own)
            })
        };
        if let Some(side) = sides.iter_mut().find(|side| shares(side)) {
            side.push(*rank);
            side.sort_unstable();
        }
    }
}
