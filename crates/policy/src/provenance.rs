//! Where everything that is in force was stated.

use std::collections::BTreeMap;
use std::ops::Range;

use crossover_core::policy::{Candidate, Layer, Origin, Rule};

use crate::diagnostic::{Code, Diagnostic, Source};
use crate::file::Standing;

/// A field, and who stated what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statement {
    /// Of a rule `match`, `chain`, `priority`, `last`, `enabled` or `evidence`; of the contract
    /// `determinism` or `accept`.
    pub field: &'static str,
    /// The layer of the file or verb.
    pub layer: Layer,
    /// The file and line, or the variable or option.
    pub origin: Origin,
}

/// A preset, as the strongest layer has it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Preset {
    /// Its name.
    pub id: String,
    /// The layer of the file.
    pub layer: Layer,
    /// Where it is written.
    pub origin: Origin,
    /// What it stands for.
    pub chain: Vec<Candidate>,
}

/// A piece of one of the texts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    /// Index into [`Provenance::sources`].
    pub(crate) document: usize,
    pub(crate) span: Range<usize>,
}

/// Of everything, where it was stated.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Provenance {
    /// The texts, and how each came into the stack, weakest first.
    pub(crate) sources: Vec<(Standing, Source)>,
    pub(crate) rules: BTreeMap<String, RulePlaces>,
    pub(crate) contract: Vec<Statement>,
    pub(crate) presets: Vec<Preset>,
}

/// Where the parts of a rule are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RulePlaces {
    /// Its id, where it was stated last.
    pub(crate) name: Place,
    /// Its chain before anything was disabled.
    pub(crate) chain: Vec<(Candidate, Place)>,
    pub(crate) statements: Vec<Statement>,
}

impl Provenance {
    /// The text of a file.
    pub(crate) fn source(&self, file: &str) -> Option<&Source> {
        self.sources.iter().map(|(_, source)| source).find(|source| source.name == file)
    }

    /// Does a file lie in a layer of the site's or above it?
    pub(crate) fn has_user_files(&self) -> bool {
        self.sources.iter().any(|(standing, _)| standing.layer >= Layer::Site)
    }

    /// A finding about a rule, or about a candidate of its chain, where that is written.
    pub(crate) fn finding(
        &self,
        code: Code,
        rule: &Rule,
        candidate: Option<usize>,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let Some(places) = self.rules.get(&rule.id) else {
            // What a verb forces stands in no file.
            let text = rule.id.clone();
            let source = Source { name: rule.origin.to_string(), text: text.clone() };
            return source.diagnostic(code, 0..text.len(), message, help);
        };
        let place = candidate.and_then(|at| places.of_candidate(rule, at));
        let place = place.unwrap_or(&places.name);
        self.sources[place.document].1.diagnostic(code, place.span.clone(), message, help)
    }

    /// A finding about a piece of a file.
    pub(crate) fn finding_in(
        &self,
        file: &str,
        span: Range<usize>,
        code: Code,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let nameless = Source { name: file.to_owned(), text: String::new() };
        self.source(file).unwrap_or(&nameless).diagnostic(code, span, message, help)
    }
}

impl RulePlaces {
    /// Where a candidate is written. What is disabled is in the chain no more, so that positions
    /// may have moved; and one that became several algorithms is written as none of them.
    fn of_candidate(&self, rule: &Rule, at: usize) -> Option<&Place> {
        let wanted = rule.chain.get(at)?;
        let same = |(candidate, _): &&(Candidate, Place)| candidate == wanted;
        let here = self.chain.get(at).filter(same);
        here.or_else(|| self.chain.iter().find(same)).map(|(_, place)| place)
    }
}
