//! Two histories part: what differs, and does one of them only lack a record?

use crossover_core::call::Op;

use crate::diagnosis::{Branch, Class, NOTE};
use crate::image::{Image, Record, What};

/// How two records under one number differ.
#[derive(Debug, PartialEq)]
pub(super) struct Parting {
    pub(super) class: Class,
    pub(super) branch: Option<Branch>,
    pub(super) fields: Vec<String>,
}

/// Compares record `number` of the usual history with the odd one's, and what follows.
pub(super) fn part(usual: &Image, odd: &Image, number: u64) -> Option<Parting> {
    let (one, other) = (usual.records.get(&number)?, odd.records.get(&number)?);
    let by_itself = compare(one, other);
    if matches!(by_itself.class, Class::StateDrift | Class::Left | Class::DecisionDivergence) {
        return Some(by_itself);
    }
    let same_place = one.what == other.what && !one.site.is_empty() && one.site == other.site;
    let lacks = shift(usual, odd, number, if same_place { 2 } else { 1 });
    let before = || same_as_before(usual, one, other).then_some(Branch::Skipped);
    Some(match lacks.or_else(before) {
        Some(branch) => {
            let is_note = match branch {
                Branch::Skipped => one.what == What::State,
                Branch::Extra => other.what == What::State,
                _ => false,
            };
            let fields = if is_note { vec![NOTE.to_owned()] } else { Vec::new() };
            Parting { fields, ..branching(branch) }
        }
        None => by_itself,
    })
}

fn compare(usual: &Record, odd: &Record) -> Parting {
    let mismatch = |class, fields| Parting { class, branch: None, fields };
    match (usual.what, odd.what) {
        (What::State, What::State) => mismatch(Class::StateDrift, state_fields(usual, odd)),
        (What::Call(_), What::Call(_)) if usual.mode != odd.mode => branching(Branch::EagerVsGraph),
        (What::Call(a), What::Call(b)) if a == b => compare_calls(a, usual, odd),
        (What::Replay, What::Replay) | (What::Commit, What::Commit) => {
            branching(Branch::OtherGraph)
        }
        (What::Replay, What::Call(_)) | (What::Call(_), What::Replay) => {
            branching(Branch::EagerVsGraph)
        }
        (_, What::Close) => mismatch(Class::Left, Vec::new()),
        _ => branching(Branch::DifferentPath),
    }
}

fn compare_calls(op: Op, usual: &Record, odd: &Record) -> Parting {
    let differ = [
        ("dtype", usual.dtype != odd.dtype),
        ("reduce_op", op.reduces() && usual.reduce_op != odd.reduce_op),
        ("root", op == Op::Broadcast && usual.root != odd.root),
        ("count", usual.count != odd.count),
    ];
    let fields: Vec<String> =
        differ.iter().filter(|(_, differs)| *differs).map(|(name, _)| (*name).to_owned()).collect();
    let class = match fields.as_slice() {
        _ if elsewhere(usual, odd) => return branching(Branch::DifferentPath),
        [only] if only == "count" => Class::SizeMismatch,
        [] if usual.target != odd.target => Class::DecisionDivergence,
        // All that a record shows is equal, and the digest of all that must be is not.
        [] => {
            let fields = vec!["split or contract".to_owned()];
            return Parting { class: Class::ArgumentMismatch, branch: None, fields };
        }
        _ => Class::ArgumentMismatch,
    };
    Parting { class, branch: None, fields }
}

fn state_fields(usual: &Record, odd: &Record) -> Vec<String> {
    let differ = [("step", usual.step != odd.step), ("digest", usual.count != odd.count)];
    differ.iter().filter(|(_, differs)| *differs).map(|(name, _)| (*name).to_owned()).collect()
}

fn branching(branch: Branch) -> Parting {
    Parting { class: Class::BranchDivergence, branch: Some(branch), fields: Vec::new() }
}

fn elsewhere(usual: &Record, odd: &Record) -> bool {
    !usual.site.is_empty() && !odd.site.is_empty() && usual.site != odd.site
}

/// Do the histories match again when one record is left out on one side, and not as they are?
fn shift(usual: &Image, odd: &Image, number: u64, enough: u64) -> Option<Branch> {
    if matching(usual, number + 1, odd, number + 1).is_some_and(|records| records > 0) {
        return None;
    }
    let skipped = matching(usual, number + 1, odd, number).unwrap_or(0);
    let extra = matching(usual, number, odd, number + 1).unwrap_or(0);
    match skipped.max(extra) {
        longest if longest < enough => None,
        longest if longest == skipped => Some(Branch::Skipped),
        _ => Some(Branch::Extra),
    }
}

/// How many records match from there on, as far as both are kept; None if one does not.
fn matching(usual: &Image, from: u64, odd: &Image, odd_from: u64) -> Option<u64> {
    const ENOUGH: u64 = 64; // half a step of a model's calls
    let pair = |n: u64| usual.records.get(&(from + n)).zip(odd.records.get(&(odd_from + n)));
    let pairs = (0..ENOUGH).map_while(pair);
    pairs.into_iter().try_fold(0, |matched, (one, other)| {
        (one.fingerprint == other.fingerprint).then_some(matched + 1)
    })
}

/// Nobody came further than this record. Did what the odd rank has follow this record before, when
/// all were together? Then it left this one out.
fn same_as_before(usual: &Image, one: &Record, other: &Record) -> bool {
    let fingerprint = |number: u64| usual.records.get(&number).map(|record| record.fingerprint);
    let at_front = !usual.records.contains_key(&(one.number + 1));
    let before = one.number.checked_sub(1).and_then(fingerprint);
    let same = |record: &&Record| {
        let alike = record.fingerprint == one.fingerprint && record.site == one.site;
        alike && record.number > 1 && fingerprint(record.number - 1) == before
    };
    let earlier = usual.records.range(..one.number).rev().map(|(_, record)| record);
    let follower = earlier.into_iter().find(same).map(|record| record.number + 1);
    at_front
        && before.is_some()
        && follower.and_then(|number| usual.records.get(&number)).is_some_and(|record| {
            record.number < one.number
                && record.fingerprint == other.fingerprint
                && record.site == other.site
        })
}
