//! Which candidates are ever chosen, by any of the algorithms that they name.

use std::collections::{BTreeSet, HashSet};

use crossover_core::policy::Rule;

use super::View;
use super::case::Case;
use crate::domain::decisions;

/// A candidate, the same in every stack of the same files: file, line, rule, and its number in the
/// chain.
pub(super) type Place = (String, u32, String, usize);

pub(super) fn place(rule: &Rule, candidate: usize) -> Place {
    (rule.origin.file.clone(), rule.origin.line, rule.id.clone(), candidate)
}

/// Those that are chosen somewhere.
#[derive(Default)]
pub(super) struct Chosen(HashSet<Place>);

impl Chosen {
    pub(super) fn contains(&self, rule: &Rule, candidate: usize) -> bool {
        self.0.contains(&place(rule, candidate))
    }

    /// Adds all that are chosen in this case, under any contract that can be in force; under the
    /// stated one alone, if the engine states one.
    pub(super) fn see(&mut self, view: &View<'_>, case: &Case<'_>) {
        let rules = view.book.rules;
        let mut asked = Vec::new();
        for r in &case.reach {
            let rule = &rules[r.rule];
            if !view.tells(rule) || self.contains(rule, r.candidate) {
                continue;
            }
            let contract = view.showing(r.algorithm);
            if asked.contains(&contract) {
                continue;
            }
            asked.push(contract);
            let admitted = case.under(view.book, contract);
            let first = decisions(&admitted, case.element());
            for at in first.into_iter().filter_map(|(_, at)| at).collect::<BTreeSet<usize>>() {
                let first = &admitted[at];
                self.0.insert(place(&rules[first.rule], first.candidate));
            }
        }
    }
}
