//! Files laid over one another: a rule that a higher file states again, by id, is changed only in
//! what that file states.
//!
//! A rule stands in the layer that stated it last, so that stating it again also moves it before
//! the rules of the layers in between.

use std::cmp::Reverse;

use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::policy::{Layer, Rule};

use crate::diagnostic::{Code, Diagnostic};
use crate::file::{Document, StatedContract, StatedRule};
use crate::suggest;

/// Lays documents over one another, weakest first. `elsewhere` are the ids of rules that shipped
/// files of other architectures have: a shared file may change them, and does nothing here.
///
/// # Errors
///
/// Every rule that has no chain, neither here nor below.
pub(crate) fn stack(
    documents: &[(Layer, Document)],
    elsewhere: &[String],
) -> Result<(Contract, Vec<Rule>), Vec<Diagnostic>> {
    let mut contract = StatedContract::default();
    let mut rules: Vec<Placed> = Vec::new();
    let mut problems = Vec::new();
    for (height, (layer, document)) in documents.iter().enumerate() {
        contract = contract.overlaid(document.contract);
        for (position, stated) in document.rules.iter().enumerate() {
            let below = rules.iter().position(|placed| placed.rule.id == stated.id);
            let placed = match below.map(|at| rules.remove(at)) {
                Some(below) => below.restated(stated, *layer),
                None if elsewhere.contains(&stated.id) && stated.when.is_none() => continue,
                None => match Placed::new(stated, *layer) {
                    Some(placed) => placed,
                    None => {
                        problems.push(nothing_to_restate(document, stated, &rules));
                        continue;
                    }
                },
            };
            rules.push(Placed { height, position, ..placed });
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    // Within a layer, a later file goes first: it is the stronger one, as it is for equal ids.
    rules.sort_by_key(|placed| (Reverse(placed.height), placed.position));
    let rules = rules.into_iter().filter(|placed| placed.enabled).map(|placed| placed.rule);
    Ok((contract.in_force(), rules.collect()))
}

/// A rule, and where in the stack it lies.
struct Placed {
    height: usize,
    position: usize,
    enabled: bool,
    rule: Rule,
}

impl Placed {
    fn new(stated: &StatedRule, layer: Layer) -> Option<Placed> {
        let rule = Rule {
            id: stated.id.clone(),
            layer,
            origin: stated.origin.clone(),
            priority: stated.priority.unwrap_or(0),
            last: stated.last.unwrap_or(false),
            when: stated.when.clone().unwrap_or_default(),
            chain: stated.chain.clone()?,
            evidence: stated.evidence.clone(),
        };
        Some(Placed { height: 0, position: 0, enabled: stated.enabled.unwrap_or(true), rule })
    }

    fn restated(self, stated: &StatedRule, layer: Layer) -> Placed {
        let Placed { enabled, rule: below, .. } = self;
        // Evidence is about the numbers in a chain: it does not outlive them.
        let evidence = match (&stated.evidence, &stated.chain) {
            (Some(evidence), _) => Some(evidence.clone()),
            (None, Some(_)) => None,
            (None, None) => below.evidence,
        };
        let rule = Rule {
            id: below.id,
            layer,
            origin: stated.origin.clone(),
            priority: stated.priority.unwrap_or(below.priority),
            last: stated.last.unwrap_or(below.last),
            when: stated.when.clone().unwrap_or(below.when),
            chain: stated.chain.clone().unwrap_or(below.chain),
            evidence,
        };
        Placed { height: 0, position: 0, enabled: stated.enabled.unwrap_or(enabled), rule }
    }
}

impl StatedContract {
    fn overlaid(self, higher: StatedContract) -> StatedContract {
        StatedContract {
            determinism: higher.determinism.or(self.determinism),
            accept: higher.accept.or(self.accept),
        }
    }

    /// What no file states, the policy leaves to the engine, whose contract this is intersected
    /// with.
    fn in_force(self) -> Contract {
        Contract {
            determinism: self.determinism.unwrap_or(Determinism::Any),
            accept: self.accept.unwrap_or(Deviations::ALL),
        }
    }
}

fn nothing_to_restate(document: &Document, stated: &StatedRule, below: &[Placed]) -> Diagnostic {
    let message = format!("rule `{}` has no chain, and no lower layer has that rule", stated.id);
    let help = suggest::help(&stated.id, below.iter().map(|placed| placed.rule.id.as_str()));
    document.source.diagnostic(Code::Unknown, stated.span.clone(), message, Some(help))
}
