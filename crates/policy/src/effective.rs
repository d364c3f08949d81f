//! The policy in force, and where each part of it comes from.

use crossover_core::policy::{Policy, Rule};

use crate::diagnostic::{Code, Diagnostic};
use crate::file::Expect;
use crate::provenance::{Preset, Provenance, Statement};
use crate::target::Target;
use crate::verbs::Forced;

/// The policy in force, and what of it was forced.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Effective {
    /// What the core compiles. Chains no longer name what is disabled, so that its digest differs
    /// where ranks disable different things.
    pub policy: Policy,
    /// Choices that forming a group must honour or fail.
    pub forced: Vec<Forced>,
    /// Backends and algorithms that are switched off.
    pub disabled: Vec<Target>,
    pub(crate) disabled_rules: Vec<Rule>,
    /// The policy's own tests, from all files.
    pub(crate) expects: Vec<Expect>,
    pub(crate) provenance: Provenance,
}

impl Effective {
    /// The rules that a file or a verb switched off, with the chains that they would have.
    pub fn disabled_rules(&self) -> &[Rule] {
        &self.disabled_rules
    }

    /// The fields of a rule that somebody stated, and who did last, in the order in which they
    /// were; empty for a rule that a verb forces, and for one that is not there.
    pub fn statements(&self, rule: &str) -> &[Statement] {
        self.provenance.rules.get(rule).map_or(&[], |places| &places.statements)
    }

    /// Who stated the policy's side of the contract; what is not in the list is left to the engine.
    pub fn contract_statements(&self) -> &[Statement] {
        &self.provenance.contract
    }

    /// The presets of all files, each as the strongest layer has it, sorted by name.
    pub fn presets(&self) -> &[Preset] {
        &self.provenance.presets
    }

    /// A finding about a rule, or about a candidate of its chain (counted from 0), at the place
    /// where that is written.
    pub(crate) fn finding(
        &self,
        code: Code,
        rule: &Rule,
        candidate: Option<usize>,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        self.provenance.finding(code, rule, candidate, message, help)
    }

    /// A finding about an `[[expect]]` block, at its `use`.
    pub(crate) fn finding_of_expect(
        &self,
        code: Code,
        expect: &Expect,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let (file, span) = (&expect.origin.file, expect.span.clone());
        self.provenance.finding_in(file, span, code, message, help)
    }
}
