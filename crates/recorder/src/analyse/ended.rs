//! A group that ended with an error, and nothing in what ranks did tells why: their own words.

use std::collections::BTreeMap;

use crossover_core::bootstrap::ranks_in_words;

use crate::diagnosis::{Class, Verdict};

use super::advice;
use super::finding::{at, finding};
use super::group::{Group, NANOS_PER_MS, failed, issued, last};
use crate::words;

/// Sentences that are quoted.
const QUOTED: usize = 4;
/// Ranks that come to a call further apart than this do not work side by side.
const APART_MS: u64 = 1000;

/// Quotes the ranks that failed.
pub(super) fn verdict(group: &Group<'_>) -> Option<Verdict> {
    let failed = group.images.iter().filter(|(_, image)| failed(image));
    let mut ranks: Vec<u32> = failed.map(|(rank, _)| *rank).collect();
    // Who came least far failed first.
    let first = *ranks.iter().min_by_key(|rank| (issued(group.images[rank]), **rank))?;
    let mut ends: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for rank in &ranks {
        let end = group.images[rank].progress.end.as_deref();
        ends.entry(end.unwrap_or("no error is known")).or_default().push(*rank);
    }
    let mut ends: Vec<_> = ends.into_iter().collect();
    ends.sort_by_key(|(_, ranks)| (!ranks.contains(&first), ranks[0]));
    let says = |(end, ranks): &(&str, Vec<u32>)| {
        let verb = words::verb(ranks, "says", "say");
        format!("{} {verb}: {end}", ranks_in_words(ranks))
    };
    let everyone = ranks.len() == group.world as usize;
    let on = if everyone { "all ranks".to_owned() } else { ranks_in_words(&ranks) };
    let sentence = format!("group `{}` ended with an error on {on}; {}", group.tag, says(&ends[0]));
    ranks.sort_unstable();
    let mut verdict = finding(group, Class::Ended, ranks);
    if let Some(record) = last(group.images[&first]) {
        verdict = at(verdict, record);
    }
    verdict.found = group.images[&first].progress.end.clone();
    verdict.sentence = sentence;
    verdict.evidence = ends[1..].iter().take(QUOTED).map(says).collect();
    verdict.evidence.extend(latecomer(group));
    verdict.advice = advice::ended(group, &[first]);
    Some(verdict)
}

/// Who came to the last common record long after the others. Clocks of one node alone agree.
fn latecomer(group: &Group<'_>) -> Option<String> {
    let number = group.images.values().map(|image| issued(image)).min()?;
    let first_node = group.images.keys().next().map(|rank| group.node(*rank))?;
    let came = group.images.iter().map(|(rank, image)| {
        let record = image.records.get(&number)?;
        (group.node(*rank) == first_node).then_some((record.at, *rank))
    });
    let mut came: Vec<(u64, u32)> = came.collect::<Option<_>>()?;
    came.sort_unstable();
    let [.., (before, _), (latest, rank)] = came.as_slice() else { return None };
    let apart = (latest - before) / NANOS_PER_MS;
    let late = words::span(apart);
    (apart >= APART_MS)
        .then(|| format!("rank {rank} came to record {number} {late} after the others"))
}
