//! Engines repeat themselves. What followed the last time tells which side is odd, also where two
//! ranks are no majority.

use crossover_core::bootstrap::ranks_in_words;

use super::group::Group;
use super::history::Difference;
use crate::words;

/// Records before a difference that have to be as they were.
const CONTEXT: u64 = 3;

/// Says what all ranks did the last time that the same had gone before.
pub(super) fn evidence(group: &Group<'_>, difference: &Difference) -> Option<String> {
    let records = &group.images.get(&difference.sides[0][0])?.records;
    let kind = |number: u64| records.get(&number).map(|r| (r.fingerprint, r.site.as_str()));
    let number = difference.number;
    let context: Vec<_> =
        (1..=CONTEXT).map(|back| kind(number.checked_sub(back)?)).collect::<Option<_>>()?;
    let same = |at: &u64| {
        let before = (1..=CONTEXT).map(|back| kind(at.checked_sub(back)?));
        before.eq(context.iter().copied().map(Some))
    };
    let at = records.range(..number).rev().map(|(at, _)| *at).find(same)?;
    let then = &records[&at];
    let agrees = |side: &&Vec<u32>| {
        let image = side.first().and_then(|rank| group.images.get(rank));
        let record = image.and_then(|image| image.records.get(&number));
        record.is_some_and(|record| record.fingerprint == then.fingerprint)
    };
    let same = difference.sides.iter().find(agrees)?;
    Some(format!(
        "after the same three records all ranks had {} before (record {at}), as {} {} now",
        words::record(then),
        ranks_in_words(same),
        words::verb(same, "has", "have")
    ))
}
