//! W006: why a candidate is never chosen. Of all cases, the one in which it comes furthest says it
//! best.

use std::collections::{BTreeMap, HashSet};

use crossover_core::call::CallKind;
use crossover_core::eligibility::Clause;

use super::View;
use super::case::{Case, Key, admitted};
use super::chosen::{Chosen, Place, place};
use super::words::{call_words, group_words, target_of_rule};
use crate::bytes::{range_text, size_text};
use crate::diagnostic::{Code, Diagnostic};
use crate::domain::{Domain, Reach, decide, points};

/// How far it comes in a case, from the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Its rule does not match.
    Unmatched,
    /// Its rule stands behind one that is marked last.
    Closed,
    /// A clause refuses the call, the more the later it is judged.
    Clause(usize),
    /// The contract of the files refuses the algorithm.
    Contract,
    /// There is no size in its range for which there is room.
    Size,
    /// Others serve all that it could.
    Shadowed,
}

/// For each candidate that is never chosen, the best that is known.
#[derive(Default)]
pub(super) struct Reasons(BTreeMap<Place, Reason>);

struct Reason {
    stage: Stage,
    finding: Diagnostic,
}

impl Reasons {
    /// Looks at the candidates of one stack that no stack chooses.
    pub(super) fn look(&mut self, view: &View<'_>, domain: &Domain, chosen: &Chosen) {
        // With how far each is known to come in this stack.
        let mut lost: Vec<(usize, usize, Option<Stage>)> =
            lost(view, chosen).into_iter().map(|(rule, at)| (rule, at, None)).collect();
        let mut seen: HashSet<Key> = HashSet::new();
        for (group, call) in domain.pairs() {
            if lost.is_empty() {
                return;
            }
            let case = Case::new(view.book, group, call);
            let is_new = seen.insert(case.key());
            for (rule, candidate, known) in &mut lost {
                // Cases in which the same is reached differ in what refuses the rest alone.
                if !is_new && known.is_some_and(|known| known >= Stage::Contract) {
                    continue;
                }
                let stage = stage(view, &case, *rule, *candidate);
                *known = (*known).max(Some(stage));
                let place = place(&view.book.rules[*rule], *candidate);
                if self.0.get(&place).is_none_or(|known| known.stage < stage) {
                    let finding = tell(view, &case, *rule, *candidate, stage);
                    self.0.insert(place, Reason { stage, finding });
                }
            }
            // It can come no further.
            lost.retain(|(.., known)| *known != Some(Stage::Shadowed));
        }
    }

    pub(super) fn findings(self) -> impl Iterator<Item = Diagnostic> {
        self.0.into_values().map(|reason| reason.finding)
    }
}

/// The candidates that are never chosen, as indices. Those of unknown backends are left out: what
/// they would take is not known.
fn lost(view: &View<'_>, chosen: &Chosen) -> Vec<(usize, usize)> {
    let rules = view.book.rules.iter().enumerate().filter(|(_, rule)| view.tells(rule));
    let candidates = rules.flat_map(|(at, rule)| (0..rule.chain.len()).map(move |c| (at, rule, c)));
    candidates
        .filter(|(at, rule, c)| {
            !view.book.named_by(*at, *c).is_empty() && !chosen.contains(rule, *c)
        })
        .map(|(at, _, c)| (at, c))
        .collect()
}

fn stage(view: &View<'_>, case: &Case<'_>, rule: usize, candidate: usize) -> Stage {
    if case.matched.binary_search(&rule).is_err() {
        return Stage::Unmatched;
    }
    if case.reached.last().is_none_or(|last| *last < rule) {
        return Stage::Closed;
    }
    if own(&case.reach, rule, candidate).next().is_none() {
        return Stage::Clause(refusing(view, case, rule, candidate).map_or(0, |(c, _)| c as usize));
    }
    let own: Vec<Reach> = own(&case.reach, rule, candidate).cloned().collect();
    if admitted(view.book, case.group, &case.call, &own, view.contract).is_empty() {
        return Stage::Contract;
    }
    match shadow(view, case, rule, candidate) {
        None => Stage::Size,
        Some(_) => Stage::Shadowed,
    }
}

fn own(reach: &[Reach], rule: usize, candidate: usize) -> impl Iterator<Item = &Reach> {
    // In order of rules and candidates.
    let start = reach.partition_point(|r| (r.rule, r.candidate) < (rule, candidate));
    reach[start..].iter().take_while(move |r| r.rule == rule && r.candidate == candidate)
}

/// The clause that the most willing of its algorithms refuses by, and that algorithm.
fn refusing(
    view: &View<'_>,
    case: &Case<'_>,
    rule: usize,
    candidate: usize,
) -> Option<(Clause, usize)> {
    let clauses = view.book.named_by(rule, candidate).iter().filter_map(|&algorithm| {
        let known = &view.book.known[algorithm];
        let e = &known.algorithm.eligibility;
        Some((e.failing(case.group, &case.call, 0, known.room)?, algorithm))
    });
    clauses.max_by_key(|(clause, _)| *clause as usize)
}

/// A size that it would serve, and who serves it.
fn shadow(view: &View<'_>, case: &Case<'_>, rule: usize, candidate: usize) -> Option<(u64, Reach)> {
    for r in own(&case.reach, rule, candidate) {
        let admitted = case.under(view.book, view.showing(r.algorithm));
        if !admitted.contains(r) {
            continue;
        }
        let sizes = points(&admitted, case.element());
        if let Some(size) = sizes.into_iter().find(|size| r.serves(*size)) {
            let first = decide(&admitted, size)?;
            return Some((size, admitted[first].clone()));
        }
    }
    None
}

fn tell(
    view: &View<'_>,
    case: &Case<'_>,
    rule: usize,
    candidate: usize,
    stage: Stage,
) -> Diagnostic {
    let rules = view.book.rules;
    let (call, group) = (call_words(&case.call), group_words(case.group));
    let target = rules[rule].chain[candidate].target();
    // A rule that is never tried is one mistake, however long its chain.
    let at = (stage > Stage::Closed).then_some(candidate);
    let (message, help) = match stage {
        Stage::Unmatched => (
            format!("rule `{}` matches no group and call that can be", rules[rule].id),
            "look for keys that exclude one another, such as an architecture and a topology",
        ),
        Stage::Closed => {
            let closing = case.reached.last().map(|at| &rules[*at]);
            let by = closing.map(|r| format!("`{}` ({})", r.id, r.origin)).unwrap_or_default();
            let id = &rules[rule].id;
            (
                format!("rule `{id}` is never tried: rule {by} goes before it and is `last`"),
                "take `last` away there, raise the `priority` here, or take this rule out",
            )
        }
        Stage::Clause(_) => {
            let why = refusal(view, case, rule, candidate);
            (
                format!("`{target}` is never chosen: it takes no call of this rule; {why}"),
                "take it out, or match what it takes",
            )
        }
        Stage::Contract => {
            let why = refusal_by_contract(view, case, rule, candidate);
            (
                format!("`{target}` is never chosen: the contract excludes it; {why}"),
                "take it out, or let the contract accept it",
            )
        }
        Stage::Size => {
            let room = own(&case.reach, rule, candidate).map(|r| r.room).max().unwrap_or(u64::MAX);
            let range = range_text(rules[rule].chain[candidate].bytes);
            let room = match room {
                u64::MAX => "none of its sizes is one that it takes".to_owned(),
                room => format!("there is room for at most {}", size_text(room)),
            };
            (
                format!("`{target}` is never chosen for `{range}`: {room}"),
                "take it out, or let its range reach sizes that it takes",
            )
        }
        Stage::Shadowed => {
            let by = shadow(view, case, rule, candidate).map(|(size, first)| {
                let by = target_of_rule(&view.book.target(first.algorithm), &rules[first.rule]);
                format!("{by} serves {call} of {} on {group}", size_text(size))
            });
            let by = by.unwrap_or_default();
            (
                format!("`{target}` is never chosen: what stands before it takes all; {by}"),
                "take it out, or narrow the range of what stands before it",
            )
        }
    };
    view.effective.finding(Code::NeverChosen, &rules[rule], at, message, Some(help.to_owned()))
}

fn refusal(view: &View<'_>, case: &Case<'_>, rule: usize, candidate: usize) -> String {
    let Some((clause, algorithm)) = refusing(view, case, rule, candidate) else {
        return String::new();
    };
    let known = &view.book.known[algorithm];
    let e = &known.algorithm.eligibility;
    e.refusal(clause, case.group, &case.call, 0, known.room).to_string()
}

fn refusal_by_contract(view: &View<'_>, case: &Case<'_>, rule: usize, candidate: usize) -> String {
    let call = CallKind { contract: view.contract, ..case.call };
    let refusals = own(&case.reach, rule, candidate).filter_map(|r| {
        let e = &view.book.known[r.algorithm].algorithm.eligibility;
        let clause = e.failing(case.group, &call, 0, r.room)?;
        Some(e.refusal(clause, case.group, &call, 0, r.room).to_string())
    });
    refusals.last().unwrap_or_default()
}
