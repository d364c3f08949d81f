//! A rule while files are laid.

use crossover_core::policy::{Candidate, EvidenceKind, Layer, Match, Origin, Rule};

use super::Height;
use crate::file::{ChainItem, Fields, Said};
use crate::provenance::{Place, Statement};

/// A rule, and where in the stack it lies.
pub(super) struct Placed<'d> {
    /// Without its chain: that is complete when all presets are known.
    rule: Rule,
    /// The part of its match that its name states, where it is a row of a table.
    pub(super) keys: Match,
    /// As the document of this index has it.
    pub(super) chain: &'d [ChainItem],
    pub(super) chain_document: usize,
    pub(super) enabled: bool,
    pub(super) name: Place,
    pub(super) height: Height,
    statements: Vec<Statement>,
}

impl<'d> Placed<'d> {
    /// A rule of which nothing is stated yet.
    pub(super) fn new(id: String, name: Place, height: Height) -> Self {
        let rule = Rule {
            id,
            layer: height.layer,
            origin: Origin::default(),
            priority: 0,
            last: false,
            forced: false,
            when: Match::default(),
            chain: Vec::new(),
            evidence: None,
        };
        Placed {
            rule,
            keys: Match::default(),
            chain: &[],
            chain_document: height.document,
            enabled: true,
            name,
            height,
            statements: Vec::new(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.rule.id
    }

    /// Is it the rule, or a row of the table, of this id?
    pub(super) fn is_named(&self, id: &str) -> bool {
        self.rule.id == id || self.is_row_of(id)
    }

    pub(super) fn is_row_of(&self, table: &str) -> bool {
        self.rule.id.split_once('@').is_some_and(|(of, _)| of == table)
    }

    /// States it again, higher up.
    pub(super) fn move_to(&mut self, name: Place, height: Height) {
        self.name = name;
        self.height = height;
    }

    /// Changes what these fields state, at this origin; the chain among them is the caller's.
    pub(super) fn lay(
        &mut self,
        fields: &Fields,
        chain: Option<&'d Said<Vec<ChainItem>>>,
        origin: &Origin,
    ) {
        let layer = self.height.layer;
        self.rule.layer = layer;
        self.rule.origin = origin.clone();
        let mut stated = Vec::new();
        let mut note = |field, line| {
            stated.push(Statement { field, layer, origin: Origin { line, ..origin.clone() } });
        };
        if let Some(when) = &fields.when {
            self.rule.when = when.value.clone();
            note("match", when.line);
        }
        if let Some(chain) = chain {
            self.chain = &chain.value;
            self.chain_document = self.height.document;
            note("chain", chain.line);
            // Evidence is about the numbers in a chain: it does not outlive them.
            self.rule.evidence = None;
            self.statements.retain(|statement| statement.field != "evidence");
        }
        if let Some(priority) = &fields.priority {
            self.rule.priority = priority.value;
            note("priority", priority.line);
        }
        if let Some(last) = &fields.last {
            self.rule.last = last.value;
            note("last", last.line);
        }
        if let Some(enabled) = &fields.enabled {
            self.enabled = enabled.value;
            note("enabled", enabled.line);
        }
        if let Some(evidence) = &fields.evidence {
            self.rule.evidence = Some(evidence.value.clone());
            note("evidence", evidence.line);
        }
        stated.into_iter().for_each(|statement| self.state(statement));
    }

    /// Switches it on or off. It stays in its layer.
    pub(super) fn switch(&mut self, enabled: bool, layer: Layer, origin: &Origin) {
        self.enabled = enabled;
        self.state(Statement { field: "enabled", layer, origin: origin.clone() });
    }

    fn state(&mut self, statement: Statement) {
        self.statements.retain(|below| below.field != statement.field);
        self.statements.push(statement);
    }

    /// The rule, with this chain, and where its fields were stated.
    pub(super) fn finish(mut self, chain: Vec<Candidate>) -> (Rule, Vec<Statement>) {
        self.rule.chain = chain;
        // What a tuner found on one machine never applies to another.
        if let Some(evidence) = &self.rule.evidence
            && evidence.kind == Some(EvidenceKind::Tuned)
            && let Some(device) = evidence.get("device")
            && self.rule.when.device.is_none()
        {
            self.rule.when.device = Some(vec![device.to_owned()]);
        }
        (self.rule, self.statements)
    }
}
