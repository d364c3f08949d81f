//! The operators' verbs: `use` forces a backend or an algorithm, `disable` takes some away. They
//! are a few words in a variable or an option, not a second policy language.

use crossover_core::call::{Op, Ops};
use crossover_core::policy::{Basis, ByteRange, Candidate, Layer, Match, Origin, Rule};
use crossover_core::registry::Registry;

use crate::diagnostic::{Code, Diagnostic, Source};
use crate::settings::Stated;
use crate::suggest;
use crate::target::Target;

/// A choice that somebody forced. If a group cannot have it, forming the group fails: a forced
/// choice is never replaced in silence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forced {
    /// For which collectives.
    pub ops: Ops,
    /// What.
    pub target: Target,
    /// By which variable or option.
    pub origin: Origin,
    layer: Layer,
}

impl Forced {
    /// Reads `host/two_shot`, `all_reduce=host/two_shot`, or several with commas between. A target
    /// without an op is for every op that the target states and that is not named beside it.
    pub(crate) fn parse(
        stated: &Stated<String>,
        registry: &Registry,
    ) -> Result<Vec<Forced>, Vec<Diagnostic>> {
        let mut named = Ops::NONE;
        let mut others = Ops::NONE;
        let words = each_word(stated, |word| {
            let (op, name) = match word.split_once('=') {
                Some((op, name)) => (Some(parse_op(op)?), name.trim()),
                None => (None, word),
            };
            let target = Target::parse(name);
            let runs = ops_of(&target, registry)?;
            let ops = op.map_or(runs, |op| Ops::of(&[op]));
            let taken = if op.is_some() { &mut named } else { &mut others };
            if !runs.covers(ops) {
                let message = format!("`{target}` cannot run {ops}");
                return Err((Code::Backend, message, format!("it runs: {runs}")));
            }
            let twice = taken.intersection(ops);
            if !twice.is_empty() {
                let message = format!("`{word}` forces what is forced already: {twice}");
                return Err((Code::Backend, message, "name each op once".to_owned()));
            }
            *taken = taken.union(ops);
            Ok((op.is_some(), target, ops))
        })?;
        let forced = words.into_iter().map(|(is_named, target, ops)| Forced {
            ops: if is_named { ops } else { ops.without(named) },
            target,
            origin: stated.origin.clone(),
            layer: stated.layer,
        });
        Ok(forced.filter(|forced| !forced.ops.is_empty()).collect())
    }

    /// The rule that forces it.
    pub(crate) fn rule(&self) -> Rule {
        let ops: Vec<&str> = self.ops.iter().map(Op::name).collect();
        let ops = if self.ops == Ops::ALL { String::new() } else { ops.join("+") + "=" };
        Rule {
            // No two have an op in common, and a file cannot have an id with a colon in it.
            id: format!("use:{ops}{}", self.target),
            layer: self.layer,
            origin: self.origin.clone(),
            priority: 0,
            last: true,
            when: Match { op: Some(self.ops), ..Match::default() },
            chain: vec![Candidate {
                backend: self.target.backend.clone(),
                algorithm: self.target.algorithm.clone(),
                bytes: ByteRange::ANY,
                basis: Basis::Input,
                optional: false,
            }],
            evidence: String::new(),
        }
    }

    /// The mistake of forcing what is disabled as well.
    pub(crate) fn conflict(&self) -> Diagnostic {
        let text = self.target.to_string();
        let source = Source { name: self.origin.to_string(), text: text.clone() };
        let message = format!("`{text}` is forced, and disabled as well");
        let help = "take it out of `use` or out of `disable`".to_owned();
        source.diagnostic(Code::Backend, 0..text.len(), message, Some(help))
    }
}

/// Reads the words of `disable`.
pub(crate) fn parse_disabled(
    stated: &Stated<String>,
    registry: &Registry,
) -> Result<Vec<Target>, Vec<Diagnostic>> {
    each_word(stated, |word| {
        let target = Target::parse(word);
        ops_of(&target, registry)?;
        Ok(target)
    })
}

/// Takes disabled targets out of chains, and rules that have nothing left. A bare backend name of
/// which one algorithm is disabled becomes its other algorithms.
pub(crate) fn disable(rules: &mut Vec<Rule>, disabled: &[Target], registry: &Registry) {
    let is_disabled = |backend: &str, algorithm: Option<&str>| {
        let hit = |t: &Target| {
            t.backend == backend && (t.algorithm.is_none() || t.algorithm.as_deref() == algorithm)
        };
        disabled.iter().any(hit)
    };
    for rule in rules.iter_mut() {
        let chain = std::mem::take(&mut rule.chain);
        for candidate in chain {
            let partly = candidate.algorithm.is_none()
                && disabled.iter().any(|t| t.backend == candidate.backend);
            let algorithms = match registry.find(&candidate.backend) {
                Some(entry) if partly => entry.descriptor.algorithms,
                _ => &[],
            };
            if algorithms.is_empty() {
                rule.chain.push(candidate);
            } else {
                rule.chain.extend(algorithms.iter().map(|a| Candidate {
                    algorithm: Some(a.name.to_owned()),
                    ..candidate.clone()
                }));
            }
        }
        rule.chain.retain(|c| !is_disabled(&c.backend, c.algorithm.as_deref()));
    }
    rules.retain(|rule| !rule.chain.is_empty());
}

fn parse_op(word: &str) -> Result<Op, (Code, String, String)> {
    let word = word.trim();
    word.parse().map_err(|_| {
        let help = suggest::help(word, Op::NAMES.iter().copied());
        (Code::Unknown, format!("unknown op `{word}`"), help)
    })
}

/// The collectives that a target states.
fn ops_of(target: &Target, registry: &Registry) -> Result<Ops, (Code, String, String)> {
    let (_, algorithms) =
        target.resolve(registry).map_err(|no| (Code::Backend, no.message, no.help))?;
    Ok(algorithms.iter().fold(Ops::NONE, |ops, a| ops.union(a.eligibility.ops)))
}

/// Reads each of the words between commas, or says of all that are wrong where in the value they
/// stand.
fn each_word<T>(
    stated: &Stated<String>,
    mut read: impl FnMut(&str) -> Result<T, (Code, String, String)>,
) -> Result<Vec<T>, Vec<Diagnostic>> {
    let source = Source { name: stated.origin.to_string(), text: stated.value.clone() };
    let mut values = Vec::new();
    let mut problems = Vec::new();
    let mut start = 0;
    for part in stated.value.split(',') {
        let word = part.trim();
        let at = start + part.len() - part.trim_start().len();
        start += part.len() + 1;
        if word.is_empty() {
            continue;
        }
        match read(word) {
            Ok(value) => values.push(value),
            Err((code, message, help)) => {
                let span = at..at + word.len();
                problems.push(source.diagnostic(code, span, message, Some(help)));
            }
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(problems) }
}
