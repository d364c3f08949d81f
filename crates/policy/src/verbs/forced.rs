//! `use`: a backend or an algorithm is forced.

use crossover_core::call::{Op, Ops};
use crossover_core::policy::{Basis, ByteRange, Candidate, Layer, Match, Origin, Rule};
use crossover_core::registry::Registry;

use super::{Mistake, each_word, resolve};
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
                return Err(Mistake::of_target(message, format!("it runs: {runs}")));
            }
            let twice = taken.intersection(ops);
            if !twice.is_empty() {
                let message = format!("`{word}` forces what is forced already: {twice}");
                return Err(Mistake::of_target(message, "name each op once".to_owned()));
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
            forced: true,
            when: Match { op: Some(self.ops), ..Match::default() },
            chain: vec![Candidate {
                backend: self.target.backend.clone(),
                algorithm: self.target.algorithm.clone(),
                bytes: ByteRange::ANY,
                basis: Basis::Input,
                optional: false,
                params: Vec::new(),
            }],
            evidence: None,
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

fn parse_op(word: &str) -> Result<Op, Mistake> {
    let word = word.trim();
    word.parse().map_err(|_| {
        let help = suggest::help(word, Op::NAMES.iter().copied());
        Mistake { code: Code::Unknown, message: format!("unknown op `{word}`"), help }
    })
}

/// The collectives that a target states.
fn ops_of(target: &Target, registry: &Registry) -> Result<Ops, Mistake> {
    let algorithms = resolve(target, registry)?;
    Ok(algorithms.iter().fold(Ops::NONE, |ops, a| ops.union(a.eligibility.ops)))
}
