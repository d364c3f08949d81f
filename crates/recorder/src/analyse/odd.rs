//! A difference between histories becomes a verdict: who is odd, in what, and what it led to.

use crossover_core::bootstrap::ranks_in_words;

use crate::diagnosis::{Branch, Class, Verdict};
use crate::image::{Image, Record, What};

use super::branch::{self, Parting};
use super::finding::{at, finding};
use super::group::{Group, failed, issued};
use super::history::Difference;
use super::{advice, life, precedent};
use crate::words;

/// Judges a group's first difference. None if it is no cause: a goodbye after an error.
pub(super) fn verdict(group: &Group<'_>, difference: &Difference) -> Option<Verdict> {
    let difference = &leaver_last(group, difference);
    let Some((parting, usual, odd)) = visible(group, difference) else {
        return Some(before_window(group, difference));
    };
    let goodbye = usual.what == What::Close || odd.what == What::Close;
    if goodbye && is_aftermath(group, difference) {
        return None;
    }
    let mut verdict = judged(group, difference, parting, usual, odd);
    verdict.evidence = evidence(group, difference);
    if verdict.class == Class::StateDrift {
        verdict.effect = effect(group, difference).map(Box::new);
    }
    if let Some(effect) = &verdict.effect {
        verdict.sentence += &format!("; effect: {}", effect.sentence);
    }
    Some(verdict)
}

/// Of two equal sides, one that says goodbye is the odd one.
fn leaver_last(group: &Group<'_>, difference: &Difference) -> Difference {
    let leaves = |at: usize| {
        let record = side(group, difference, at).and_then(|i| i.records.get(&difference.number));
        record.is_some_and(|record| record.what == What::Close)
    };
    let Difference { number, equal, mut sides } = difference.clone();
    if !difference.has_majority() && leaves(0) && !leaves(1) {
        sides.swap(0, 1);
    }
    Difference { number, equal, sides }
}

/// The two records that differ first, if they are kept and nothing can differ before them.
fn visible<'a>(
    group: &Group<'a>,
    difference: &Difference,
) -> Option<(Parting, &'a Record, &'a Record)> {
    let (usual, odd) = (side(group, difference, 0)?, side(group, difference, 1)?);
    let number = difference.number;
    let (one, other) = (usual.records.get(&number)?, odd.records.get(&number)?);
    let first = difference.is_exact() || difference.equal > 0;
    if !first || one.fingerprint == other.fingerprint {
        return None;
    }
    Some((branch::part(usual, odd, number)?, one, other))
}

/// One image of a side, with the record in question if any has it.
fn side<'a>(group: &Group<'a>, difference: &Difference, side: usize) -> Option<&'a Image> {
    let images =
        || difference.sides[side].iter().filter_map(|rank| group.images.get(rank).copied());
    images()
        .find(|image| image.records.contains_key(&difference.number))
        .or_else(|| images().next())
}

/// Did those say goodbye because of something that had happened before: an error on them, or a
/// process that was lost?
fn is_aftermath(group: &Group<'_>, difference: &Difference) -> bool {
    let closed = |image: &Image| {
        let record = image.records.get(&difference.number);
        record.is_some_and(|record| record.what == What::Close)
    };
    group.images.values().any(|image| {
        let lost = life::class(group, image) == Some(Class::CrashedRank);
        lost || closed(image) && failed(image)
    })
}

fn judged(
    group: &Group<'_>,
    difference: &Difference,
    parting: Parting,
    usual: &Record,
    odd: &Record,
) -> Verdict {
    let Parting { class, branch, fields } = parting;
    let ranks = match class {
        // Who leaves is odd, whatever the number of those who stay.
        Class::Left => difference.sides[1..].concat(),
        _ => difference.odd(),
    };
    let mut verdict = at(finding(group, class, ranks), usual);
    verdict.site = [usual, odd].iter().map(|record| record.site.clone()).find(|s| !s.is_empty());
    verdict.expected = Some(words::record(usual));
    verdict.found = Some(words::record(odd));
    verdict.sentence = sentence(group, difference, class, branch, &fields);
    verdict.advice = advice::parting(group, difference, class, branch, usual);
    verdict.branch = branch;
    verdict.fields = fields;
    verdict
}

fn sentence(
    group: &Group<'_>,
    difference: &Difference,
    class: Class,
    branch: Option<Branch>,
    fields: &[String],
) -> String {
    let records = records(group, difference);
    let (majority, usual) = &records[0];
    let place = words::place(usual);
    let name = match class {
        Class::BranchDivergence => "branch divergence".to_owned(),
        Class::DecisionDivergence => "decision divergence".to_owned(),
        Class::SizeMismatch => "size mismatch".to_owned(),
        Class::StateDrift => "state drift".to_owned(),
        _ => format!("mismatch of {}", fields.join(" and ")),
    };
    let head = format!("{name} in group `{}`, {place}", group.tag);
    let same_site = records.iter().all(|(_, record)| record.site == usual.site);
    let text = |record: &Record| match (class, same_site) {
        (Class::DecisionDivergence, true) => words::served(record),
        (Class::DecisionDivergence, false) => words::record(record),
        (_, true) => words::what(record),
        (_, false) => format!("{}{}", words::what(record), words::at_site(&record.site)),
    };
    let (odd_ranks, odd) = &records[1];
    let tail = if difference.has_majority() { "" } else { "; neither side is a majority" };
    let site = if same_site { words::at_site(&usual.site) } else { String::new() };
    let lone = records.len() == 2;
    let usual_ranks = ranks_in_words(majority);
    match branch {
        _ if class == Class::Left => format!(
            "in group `{}` {} closed the group, while {usual_ranks} {} {place}, {}",
            group.tag,
            ranks_in_words(&difference.sides[1..].concat()),
            words::verb(majority, "makes", "make"),
            words::record(usual),
        ),
        Some(Branch::Skipped) if lone => format!(
            "{head}: {} skipped {}, which {usual_ranks} {}, and went on with {}{tail}",
            ranks_in_words(odd_ranks),
            words::record(usual),
            words::verb(majority, "has", "have"),
            text(odd),
        ),
        Some(Branch::Extra) if lone => format!(
            "{head}: {} {} {}, which {usual_ranks} {} not; there it is {}{tail}",
            ranks_in_words(odd_ranks),
            words::verb(odd_ranks, "has", "have"),
            words::record(odd),
            words::verb(majority, "has", "have"),
            text(usual),
        ),
        _ => {
            let has = |(ranks, record): &(Vec<u32>, &Record)| {
                let verb = words::verb(ranks, "has", "have");
                format!("{} {verb} {}", ranks_in_words(ranks), text(record))
            };
            let odd: Vec<String> = records[1..].iter().map(has).collect();
            format!("{head}: {}, {}{site}{tail}", odd.join(", "), has(&records[0]))
        }
    }
}

/// Every side that has its record, with it.
fn records<'a>(group: &Group<'a>, difference: &Difference) -> Vec<(Vec<u32>, &'a Record)> {
    let with_record = |at: usize| {
        let image = side(group, difference, at)?;
        Some((difference.sides[at].clone(), image.records.get(&difference.number)?))
    };
    (0..difference.sides.len()).filter_map(with_record).collect()
}

fn evidence(group: &Group<'_>, difference: &Difference) -> Vec<String> {
    let Difference { number, equal, .. } = difference;
    let mut lines = Vec::new();
    match equal {
        _ if difference.is_exact() => {}
        0 => lines.push(format!("no record before {number} is kept of all sides")),
        _ => lines.push(format!("of records {} to {} some are lost", equal + 1, number - 1)),
    }
    if *equal > 0 {
        let last = difference.sides[0].iter().find_map(|r| group.images[r].records.get(equal));
        let what = last.map_or_else(String::new, |record| format!(", {}", words::record(record)));
        lines.push(format!("histories are equal up to record {equal}{what}"));
    }
    lines.extend(precedent::evidence(group, difference));
    let configs: Vec<_> =
        group.images.values().map(|image| super::config::digests(image)).collect();
    if configs.windows(2).all(|pair| pair[0] == pair[1]) {
        lines.push("policy, backends and version agree".to_owned());
    }
    lines
}

/// What a drift of state led to: the first call that differs.
fn effect(group: &Group<'_>, drift: &Difference) -> Option<Verdict> {
    // Others of a side may have ended before they came to what differs.
    let furthest = |at: usize| {
        let images = drift.sides[at].iter().filter_map(|rank| group.images.get(rank).copied());
        images.max_by_key(|image| issued(image))
    };
    let (usual, odd) = (furthest(0)?, furthest(1)?);
    let differs = |number: &u64| {
        let (Some(one), Some(other)) = (usual.records.get(number), odd.records.get(number)) else {
            return false;
        };
        one.fingerprint != other.fingerprint && (one.what, other.what) != (What::State, What::State)
    };
    let later = usual.records.range(drift.number + 1..).map(|(number, _)| *number);
    let number = later.into_iter().find(differs)?;
    let effect = Difference { number, equal: number - 1, sides: drift.sides.clone() };
    let parting = branch::part(usual, odd, number)?;
    let (one, other) = (usual.records.get(&number)?, odd.records.get(&number)?);
    Some(judged(group, &effect, parting, one, other))
}

/// Histories differ, and the first difference is not among what is kept.
fn before_window(group: &Group<'_>, difference: &Difference) -> Verdict {
    let Difference { number, equal, .. } = difference;
    let mut verdict = finding(group, Class::DivergedBeforeWindow, difference.odd());
    verdict.number = Some(*number);
    if let Some(record) = side(group, difference, 0).and_then(|i| i.records.get(number)) {
        (verdict.seq, verdict.step) = (Some(record.seq), Some(record.step));
    }
    let odd = difference.sides[1..].concat();
    let tail = if difference.has_majority() { "" } else { "; neither side is a majority" };
    let since = match equal {
        0 => "since before the oldest record that is kept".to_owned(),
        _ => format!("since some record after {equal}, which is lost"),
    };
    verdict.sentence = format!(
        "history in group `{}` differs {since}: at record {number} {} {} another past than \
         {}{tail}",
        group.tag,
        ranks_in_words(&odd),
        words::verb(&odd, "has", "have"),
        ranks_in_words(&difference.sides[0]),
    );
    verdict.evidence = evidence(group, difference);
    verdict.advice = advice::before_window();
    verdict
}
