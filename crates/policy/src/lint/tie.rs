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
use crate::domain::{Reach, points, sweep};

/// Rules that only their order in the file tells apart.
pub(super) struct Ties {
    /// By rule: the first that is tied with it, which stands for all of these.
    tied: Vec<usize>,
    /// How many are tied, by the first.
    members: Vec<usize>,
    /// Rules that are told to come second to one.
    told: HashSet<usize>,
}

impl Ties {
    pub(super) fn new(rules: &[Rule]) -> Ties {
        let precedence = |r: &Rule| (r.layer, r.priority, r.when.constrained());
        let are_tied =
            |a: &Rule, b: &Rule| precedence(a) == precedence(b) && a.origin.file == b.origin.file;
        let mut tied: Vec<usize> = Vec::new();
        let mut members = vec![0; rules.len()];
        // Rules are sorted by precedence, and those of a file stand together.
        for at in 0..rules.len() {
            let first = match tied.last() {
                Some(first) if are_tied(&rules[*first], &rules[at]) => *first,
                _ => at,
            };
            tied.push(first);
            members[first] += 1;
        }
        Ties { tied, members, told: HashSet::new() }
    }

    /// Pairs whose swap changes a decision of this case: for every rule that comes second in some,
    /// one.
    ///
    /// The swap of two rules changes who serves a size only if they are tied, the one decides it
    /// (by serving it, or by being the last that is tried), and the other would decide it otherwise
    /// in that place: as a rule between the two does if neither of them does.
    pub(super) fn check(&mut self, view: &View<'_>, case: &Case<'_>) -> Vec<Diagnostic> {
        let open = |rule: &&usize| {
            self.members[self.tied[**rule]] > 1
                && !self.told.contains(*rule)
                && view.tells(&view.book.rules[**rule])
        };
        let mut open: BTreeSet<usize> = case.matched.iter().filter(open).copied().collect();
        let mut findings = Vec::new();
        for contract in contracts(view, &case.unclosed) {
            if open.is_empty() {
                break;
            }
            for witness in self.witnesses(view, case, contract, &mut open) {
                self.told.insert(witness.second);
                findings.push(tell(view, case, &witness));
            }
        }
        findings
    }

    /// One for each of the open rules that has one, which then is open no more.
    fn witnesses(
        &self,
        view: &View<'_>,
        case: &Case<'_>,
        contract: Contract,
        open: &mut BTreeSet<usize>,
    ) -> Vec<Witness> {
        let rules = view.book.rules;
        let reach = admitted(view.book, case.group, &case.call, &case.unclosed, contract);
        let Some(&closing) = case.reached.last() else { return Vec::new() };
        let mut witnesses = Vec::new();
        sweep(&reach, &points(&reach, case.element()), |size, covering| {
            let mut serving = covering
                .iter()
                .map(|at| &reach[*at])
                .filter(|r| size.is_multiple_of(r.multiple_of))
                .peekable();
            let now = serving.next_if(|r| r.rule <= closing);
            let first = match now {
                Some(r) => r.rule,
                // A last rule that serves nothing decides as well.
                None if rules[closing].last => closing,
                None => return,
            };
            let behind = |rule: &usize| *rule > first && self.tied[*rule] == self.tied[first];
            if open.last().is_none_or(|last| *last <= first) {
                return;
            }
            let mut answers: BTreeSet<usize> = BTreeSet::new();
            for then in serving {
                // Of each rule, what it serves first by.
                if !behind(&then.rule) || !answers.insert(then.rule) {
                    continue;
                }
                // The same algorithm with the same params is the same decision, whoever makes it.
                if decision(view, now) != decision(view, Some(then)) && open.remove(&then.rule) {
                    witnesses.push(Witness::new(view, first, then.rule, size, now, Some(then)));
                }
            }
            let closes =
                |rule: &usize| behind(rule) && rules[*rule].last && !answers.contains(rule);
            if now.is_some() {
                let closing: Vec<usize> = open.range(first..).copied().filter(closes).collect();
                for rule in closing {
                    open.remove(&rule);
                    witnesses.push(Witness::new(view, first, rule, size, now, None));
                }
            }
        });
        witnesses
    }
}

/// Two rules, a size, who serves it, and who would if the two stood the other way round.
struct Witness {
    first: usize,
    second: usize,
    size: u64,
    target: String,
    swapped: String,
}

impl Witness {
    fn new(
        view: &View<'_>,
        first: usize,
        second: usize,
        size: u64,
        now: Option<&Reach>,
        then: Option<&Reach>,
    ) -> Witness {
        let word = |r: Option<&Reach>| {
            r.map_or("nothing".to_owned(), |r| format!("`{}`", view.book.target(r.algorithm)))
        };
        Witness { first, second, size, target: word(now), swapped: word(then) }
    }
}

/// A swap changes which of two algorithms is first, and still does under the narrowest contract
/// that admits both. Where it leaves nothing, the contract of the one alone shows it.
fn contracts(view: &View<'_>, reach: &[Reach]) -> Vec<Contract> {
    let algorithms: BTreeSet<usize> = reach.iter().map(|r| r.algorithm).collect();
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

fn tell(view: &View<'_>, case: &Case<'_>, witness: &Witness) -> Diagnostic {
    let Witness { first, second, size, target, swapped } = witness;
    let (first, second) = (&view.book.rules[*first], &view.book.rules[*second]);
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
    view.effective.finding(Code::Tie, second, None, message, Some(help))
}
