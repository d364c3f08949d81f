//! E009: two rules of one file that nothing puts in order, and a decision that depends on which of
//! them goes first.

use std::collections::{BTreeSet, HashSet};

use crossover_core::contract::Contract;
use crossover_core::policy::{ParamValue, Rule};

use super::View;
use super::case::{Case, admitted, narrowest};
use super::words::{call_words, group_words};
use crate::bytes::size_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::domain::{Reach, decide, points};

/// Pairs of rules that only their order in the file tells apart.
pub(super) struct Ties {
    open: Vec<(usize, usize)>,
    of_rule: HashSet<usize>,
}

impl Ties {
    pub(super) fn new(rules: &[Rule]) -> Ties {
        let precedence = |r: &Rule| (r.layer, r.priority, r.when.constrained());
        let tied =
            |a: &Rule, b: &Rule| precedence(a) == precedence(b) && a.origin.file == b.origin.file;
        let mut open = Vec::new();
        for (first, a) in rules.iter().enumerate() {
            // Rules are sorted by precedence.
            let rest = rules.iter().enumerate().skip(first + 1);
            let rest = rest.take_while(|(_, b)| precedence(a) == precedence(b));
            open.extend(rest.filter(|(_, b)| tied(a, b)).map(|(second, _)| (first, second)));
        }
        let of_rule = open.iter().flat_map(|(a, b)| [*a, *b]).collect();
        Ties { open, of_rule }
    }

    /// The pairs whose swap changes a decision of this case. Each pair is told once.
    pub(super) fn check(&mut self, view: &View<'_>, case: &Case<'_>) -> Vec<Diagnostic> {
        if case.matched.iter().filter(|rule| self.of_rule.contains(rule)).count() < 2 {
            return Vec::new();
        }
        let mut findings = Vec::new();
        self.open.retain(|&(first, second)| {
            // Both match, and the first is tried: else neither order tries the second.
            let meet = case.reached.contains(&first) && case.matched.contains(&second);
            let witness = if meet { witness(view, case, first, second) } else { None };
            let Some(witness) = witness else { return true };
            findings.extend(tell(view, case, first, second, &witness));
            false
        });
        findings
    }
}

/// A size, who serves it, and who would if the two rules stood the other way round.
struct Witness {
    size: u64,
    target: String,
    swapped: String,
}

fn witness(view: &View<'_>, case: &Case<'_>, first: usize, second: usize) -> Option<Witness> {
    let swap = |rule: &usize| match *rule {
        r if r == first => second,
        r if r == second => first,
        r => r,
    };
    let order: Vec<usize> = case.matched.iter().map(swap).collect();
    let swapped = view.book.reach(case.group, &case.call, &view.book.cut(&order));
    for contract in contracts(view, &case.reach, &swapped) {
        let now = case.under(view.book, contract);
        let then = admitted(view.book, case.group, &case.call, &swapped, contract);
        let both: Vec<Reach> = now.iter().chain(&then).cloned().collect();
        for size in points(&both, case.element()) {
            let who = |reach: &[Reach]| decide(reach, size).map(|at| reach[at].clone());
            let (a, b) = (who(&now), who(&then));
            // The same algorithm with the same params is the same decision, whoever makes it.
            if decision(view, a.as_ref()) != decision(view, b.as_ref()) {
                let word = |r: Option<&Reach>| {
                    r.map_or("nothing".to_owned(), |r| {
                        format!("`{}`", view.book.target(r.algorithm))
                    })
                };
                return Some(Witness { size, target: word(a.as_ref()), swapped: word(b.as_ref()) });
            }
        }
    }
    None
}

/// A swap changes which of two algorithms is first, and still does under the narrowest contract
/// that admits both. Where it leaves nothing, the contract of the one alone shows it.
fn contracts(view: &View<'_>, now: &[Reach], swapped: &[Reach]) -> Vec<Contract> {
    let both = now.iter().chain(swapped).map(|r| r.algorithm);
    let algorithms: BTreeSet<usize> = both.collect();
    let pairs = algorithms.iter().flat_map(|a| algorithms.range(a..).map(move |b| [*a, *b]));
    let mut contracts = vec![view.contract];
    for pair in pairs {
        let contract = narrowest(view.book, view.contract, &pair);
        if !contracts.contains(&contract) {
            contracts.push(contract);
        }
    }
    contracts
}

fn decision<'v>(
    view: &View<'v>,
    reach: Option<&Reach>,
) -> Option<(usize, &'v [(String, ParamValue)])> {
    reach.map(|r| (r.algorithm, &view.book.rules[r.rule].chain[r.candidate].params[..]))
}

fn tell(
    view: &View<'_>,
    case: &Case<'_>,
    first: usize,
    second: usize,
    witness: &Witness,
) -> Option<Diagnostic> {
    let (first, second) = (&view.book.rules[first], &view.book.rules[second]);
    if !view.tells(second) {
        return None;
    }
    let Witness { size, target, swapped } = witness;
    let (call, group) = (call_words(&case.call), group_words(case.group));
    let message = format!(
        "only their order in the file decides between rule `{}` (line {}) and rule `{}`: {call} of \
         {} on {group} is served by {target}, and the other way round by {swapped}",
        first.id,
        first.origin.line,
        second.id,
        size_text(*size),
    );
    let help = "give one of them a `priority`, or narrow a `match`".to_owned();
    Some(view.effective.finding(Code::Tie, second, None, message, Some(help)))
}
