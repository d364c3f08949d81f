//! Files laid over one another: a rule that a higher file states again, by id, is changed only in
//! what that file states.
//!
//! A rule stands in the layer that stated it last, so that stating it again also moves it before
//! the rules of the layers in between. A row of a table is a rule; what a table states is stated of
//! each of its rows.

mod contract;
mod placed;
mod presets;
mod table;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crossover_core::contract::Contract;
use crossover_core::policy::{Layer, Origin, Rule};

use crate::diagnostic::{Code, Diagnostic};
use crate::file::{ChainItem, Entry, Expect, Fields, Name, Said, StatedRule};
use crate::loading::Laid;
use crate::provenance::{Place, Provenance, RulePlaces};
use crate::shipped::is_in_a_pack;
use crate::suggest;
use crate::verbs::NamedRule;
use placed::Placed;

/// All that files state, in force.
pub(crate) struct Stacked {
    pub(crate) contract: Contract,
    /// In the order of the stack: the policy sorts them.
    pub(crate) rules: Vec<Rule>,
    /// Rules that a file or a verb switches off.
    pub(crate) disabled: Vec<Rule>,
    pub(crate) expects: Vec<Expect>,
    pub(crate) provenance: Provenance,
}

/// Files that are being laid.
pub(crate) struct Stack<'d> {
    documents: &'d [Laid],
    rules: Vec<Placed<'d>>,
    /// Where in `rules` each id is.
    by_id: HashMap<String, usize>,
    /// What all files so far say of each table.
    tables: HashMap<String, Fields>,
    problems: Vec<Diagnostic>,
}

/// Where in the stack something is stated.
#[derive(Clone, Copy)]
struct Height {
    document: usize,
    /// In the document: counts rules and rows.
    position: usize,
    layer: Layer,
}

impl<'d> Stack<'d> {
    /// Lays documents over one another, weakest first.
    pub(crate) fn of(documents: &'d [Laid]) -> Self {
        let mut stack = Stack {
            documents,
            rules: Vec::new(),
            by_id: HashMap::new(),
            tables: HashMap::new(),
            problems: Vec::new(),
        };
        for (document, laid) in documents.iter().enumerate() {
            let mut height = Height { document, position: 0, layer: laid.standing.layer };
            for entry in &laid.document.entries {
                match entry {
                    Entry::Rule(rule) => stack.lay_rule(rule, height),
                    Entry::Table(table) => stack.lay_table(table, &mut height),
                }
                height.position += 1;
            }
        }
        stack
    }

    /// Switches rules and tables on or off. A rule of a pack that is not in force is left alone.
    pub(crate) fn switch(&mut self, named: &[NamedRule], enabled: bool) {
        for switch in named {
            let mut found = false;
            for placed in self.rules.iter_mut().filter(|placed| placed.is_named(&switch.id)) {
                placed.switch(enabled, switch.layer, &switch.origin);
                found = true;
            }
            if !found && !is_in_a_pack(&switch.id) {
                self.problems.push(switch.unknown(self.known_beside(&switch.id)));
            }
        }
    }

    /// What is in force.
    ///
    /// # Errors
    ///
    /// Everything that is stated of what is not there.
    pub(crate) fn finish(mut self) -> Result<Stacked, Vec<Diagnostic>> {
        let presets = presets::in_force(self.documents);
        // Within a layer, a later file goes first: it is the stronger one, as it is for equal ids.
        self.rules.sort_by_key(|placed| (Reverse(placed.height.document), placed.height.position));
        let (contract, statements) = contract::in_force(self.documents);
        let mut stacked = Stacked {
            contract,
            rules: Vec::new(),
            disabled: Vec::new(),
            expects: self.documents.iter().flat_map(|l| l.document.expects.clone()).collect(),
            provenance: Provenance {
                sources: self
                    .documents
                    .iter()
                    .map(|laid| (laid.standing, laid.source.clone()))
                    .collect(),
                rules: BTreeMap::new(),
                contract: statements,
                presets: presets.values().cloned().collect(),
            },
        };
        for placed in self.rules {
            let chain = presets::expanded(&placed, &presets, self.documents, &mut self.problems);
            let (enabled, name) = (placed.enabled, placed.name.clone());
            let candidates = chain.iter().map(|(candidate, _)| candidate.clone()).collect();
            let (rule, statements) = placed.finish(candidates);
            let places = RulePlaces { name, chain, statements };
            stacked.provenance.rules.insert(rule.id.clone(), places);
            if enabled { &mut stacked.rules } else { &mut stacked.disabled }.push(rule);
        }
        if self.problems.is_empty() { Ok(stacked) } else { Err(self.problems) }
    }

    fn lay_rule(&mut self, stated: &'d StatedRule, height: Height) {
        let (id, fields) = (&stated.name.text, &stated.fields);
        if self.by_id.contains_key(id) {
            return self.restate(id, &stated.name, fields, fields.chain.as_ref(), height);
        }
        // A change of a rule of another machine's pack. With a match and a chain it is a whole rule.
        if is_in_a_pack(id) && (fields.when.is_none() || fields.chain.is_none()) {
            return;
        }
        if self.tables.contains_key(id) {
            let message = format!("`{id}` is a table of a lower file, not a rule");
            let help = format!("write `[table.{id}]`, or `[rule.\"{id}@<row>\"]` for one row");
            return self.refuse(&stated.name, height, message, help);
        }
        if let Some((table, row)) = id.split_once('@') {
            let message = format!("no lower file has a table `{table}` with a row `{row}`");
            let help = match &*self.rows_of(table) {
                [] => suggest::help(table, self.known_tables()),
                rows => suggest::help(id, rows.iter().copied()),
            };
            return self.refuse(&stated.name, height, message, help);
        }
        match &fields.chain {
            Some(chain) => self.add(id.clone(), &stated.name, fields, chain, height),
            None => {
                let message = format!("rule `{id}` has no chain, and no lower layer has that rule");
                // The rules of this file are what it states, not what it changes.
                let lower = |placed: &&Placed<'_>| placed.height.document < height.document;
                let lower = self.rules.iter().filter(lower).map(Placed::id);
                let known = suggest::help(id, lower.filter(|id| !id.contains('@')));
                let help =
                    format!("write a `chain`; only a rule of a lower layer needs none; {known}");
                self.refuse(&stated.name, height, message, help);
            }
        }
    }

    /// Adds a rule that no lower file has.
    fn add(
        &mut self,
        id: String,
        name: &Name,
        fields: &Fields,
        chain: &'d Said<Vec<ChainItem>>,
        height: Height,
    ) {
        self.by_id.insert(id.clone(), self.rules.len());
        let (origin, place) = self.place(name, height);
        let mut placed = Placed::new(id, place, height);
        placed.lay(fields, Some(chain), &origin);
        self.rules.push(placed);
    }

    /// Changes a rule that a lower file has.
    fn restate(
        &mut self,
        id: &str,
        name: &Name,
        fields: &Fields,
        chain: Option<&'d Said<Vec<ChainItem>>>,
        height: Height,
    ) {
        let (origin, place) = self.place(name, height);
        if let Some(placed) = self.by_id.get(id).and_then(|at| self.rules.get_mut(*at)) {
            placed.move_to(place, height);
            placed.lay(fields, chain, &origin);
        }
    }

    fn place(&self, name: &Name, height: Height) -> (Origin, Place) {
        let file = self.documents[height.document].source.name.clone();
        let place = Place { document: height.document, span: name.span.clone() };
        (Origin { file, line: name.line }, place)
    }

    /// The ids of a table's rows.
    fn rows_of(&self, table: &str) -> Vec<&str> {
        self.rules.iter().filter(|placed| placed.is_row_of(table)).map(Placed::id).collect()
    }

    /// What a person may have meant by an id: rules and tables, and of the table that it names the
    /// rows.
    fn known_beside(&self, id: &str) -> Vec<&str> {
        let rows = id.split_once('@').map(|(table, _)| self.rows_of(table)).unwrap_or_default();
        if !rows.is_empty() {
            return rows;
        }
        let rules = self.rules.iter().map(Placed::id).filter(|id| !id.contains('@'));
        let mut known: Vec<&str> = rules.chain(self.tables.keys().map(String::as_str)).collect();
        known.sort_unstable();
        known
    }

    fn known_tables(&self) -> Vec<&str> {
        let mut tables: Vec<&str> = self.tables.keys().map(String::as_str).collect();
        tables.sort_unstable();
        tables
    }

    fn refuse(&mut self, name: &Name, height: Height, message: String, help: String) {
        let source = &self.documents[height.document].source;
        let span = name.span.clone();
        self.problems.push(source.diagnostic(Code::Unknown, span, message, Some(help)));
    }
}
