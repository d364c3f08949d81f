//! `disable`: backends and algorithms are taken away.

use crossover_core::policy::{Candidate, Rule};
use crossover_core::registry::Registry;

use super::rules::names_rule;
use super::{each_word, resolve};
use crate::diagnostic::Diagnostic;
use crate::settings::Stated;
use crate::target::Target;

/// Reads `ipc,host/one_shot`; rules among them are
/// [`parse_disabled_rules`](super::parse_disabled_rules)' to read.
pub(crate) fn parse_disabled(
    stated: &Stated<String>,
    registry: &Registry,
) -> Result<Vec<Target>, Vec<Diagnostic>> {
    let targets = each_word(stated, |word| {
        if names_rule(word) {
            return Ok(None);
        }
        let target = Target::parse(word);
        resolve(&target, registry)?;
        Ok(Some(target))
    })?;
    Ok(targets.into_iter().flatten().collect())
}

/// Takes disabled targets out of chains, and away the rules that have nothing left. A last rule
/// stays: without it, its calls would be served by what it keeps them from.
pub(crate) fn disable(rules: &mut Vec<Rule>, disabled: &[Target], registry: &Registry) {
    for rule in rules.iter_mut() {
        let chain = std::mem::take(&mut rule.chain).into_iter();
        let left = chain.flat_map(|candidate| without(candidate, disabled, registry));
        rule.chain = left.collect();
    }
    rules.retain(|rule| rule.last || !rule.chain.is_empty());
}

/// What is left of a candidate. A backend of which one algorithm is disabled becomes its others.
fn without(candidate: Candidate, disabled: &[Target], registry: &Registry) -> Vec<Candidate> {
    let of_backend: Vec<&Target> =
        disabled.iter().filter(|target| target.backend == candidate.backend).collect();
    let is_disabled = |name: &str| {
        of_backend.iter().any(|target| target.algorithm.as_deref().is_none_or(|a| a == name))
    };
    match (&candidate.algorithm, registry.find(&candidate.backend)) {
        _ if of_backend.is_empty() => vec![candidate],
        (Some(name), _) if is_disabled(name) => Vec::new(),
        // Disabled targets are in the registry, and so is the backend of this candidate.
        (Some(_), _) | (None, None) => vec![candidate],
        (None, Some(descriptor)) => {
            let names = descriptor.algorithms.iter().map(|a| a.name);
            let left = names.filter(|name| !is_disabled(name));
            left.map(|name| Candidate { algorithm: Some(name.to_owned()), ..candidate.clone() })
                .collect()
        }
    }
}
