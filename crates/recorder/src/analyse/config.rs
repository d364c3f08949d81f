//! Do ranks work by the same policy, with the same backends, as the same version?

use std::collections::BTreeMap;

use crossover_core::bootstrap::ranks_in_words;

use crate::diagnosis::{Class, Verdict};
use crate::image::Image;

use super::advice;
use super::finding::finding;
use super::group::Group;
use crate::words;

/// What has to be equal on all ranks, by name.
pub(super) fn digests(image: &Image) -> [(&'static str, &str); 3] {
    let about = &image.about;
    [("policy", &about.policy), ("backends", &about.backends), ("version", &about.version)]
}

/// Names the ranks that are configured otherwise.
pub(super) fn divergence(group: &Group<'_>) -> Option<Verdict> {
    let mut sides: BTreeMap<[(&str, &str); 3], Vec<u32>> = BTreeMap::new();
    for (rank, image) in &group.images {
        sides.entry(digests(image)).or_default().push(*rank);
    }
    let mut sides: Vec<_> = sides.into_iter().collect();
    sides.sort_by_key(|(_, ranks)| (std::cmp::Reverse(ranks.len()), ranks[0]));
    let [(usual, majority), (odd, rest), ..] = sides.as_slice() else { return None };
    let has_majority = majority.len() > rest.len();
    let mut ranks: Vec<u32> =
        sides[usize::from(has_majority)..].iter().flat_map(|(_, ranks)| ranks.clone()).collect();
    ranks.sort_unstable();
    let differ = || usual.iter().zip(odd).filter(|(one, other)| one != other);
    let fields: Vec<String> = differ().map(|((name, _), _)| (*name).to_owned()).collect();
    let values = |side: &[(&str, &str)]| {
        let told = side.iter().map(|(name, value)| format!("{name} {value}"));
        told.collect::<Vec<_>>().join(", ")
    };
    let expected = values(&differ().map(|(one, _)| *one).collect::<Vec<_>>());
    let found = values(&differ().map(|(_, other)| *other).collect::<Vec<_>>());
    let tail = if has_majority { "" } else { "; neither side is a majority" };
    let sentence = format!(
        "configurations differ in group `{}`: {} {} {found}, {} {} {expected}{tail}",
        group.tag,
        ranks_in_words(rest),
        words::verb(rest, "has", "have"),
        ranks_in_words(majority),
        words::verb(majority, "has", "have"),
    );
    let advice = advice::config(group, rest);
    let (expected, found) = (Some(expected), Some(found));
    let verdict = finding(group, Class::ConfigDivergence, ranks);
    Some(Verdict { fields, expected, found, sentence, advice, ..verdict })
}
