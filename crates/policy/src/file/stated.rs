//! What files state, with nothing filled in: a higher file may state a part of a rule.

use std::ops::Range;

use crossover_core::contract::{Determinism, Deviations};
use crossover_core::policy::{Candidate, Evidence, Match};

/// A value, and the line that states it.
#[derive(Clone, Debug)]
pub(crate) struct Said<T> {
    pub(crate) value: T,
    pub(crate) line: u32,
}

/// What a file says about the contract.
#[derive(Debug, Default)]
pub(crate) struct StatedContract {
    pub(crate) determinism: Option<Said<Determinism>>,
    pub(crate) accept: Option<Said<Deviations>>,
}

/// A name in a file: its text, and where that is.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
    pub(crate) line: u32,
}

/// What makes rules.
#[derive(Debug)]
pub(crate) enum Entry {
    /// `[rule.<id>]`
    Rule(StatedRule),
    /// `[table.<id>]`
    Table(StatedTable),
}

impl Entry {
    pub(crate) fn name(&self) -> &Name {
        match self {
            Entry::Rule(rule) => &rule.name,
            Entry::Table(table) => &table.name,
        }
    }
}

/// What a file says about a rule.
#[derive(Debug)]
pub(crate) struct StatedRule {
    pub(crate) name: Name,
    pub(crate) fields: Fields,
}

/// What a rule or a table can state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) when: Option<Said<Match>>,
    pub(crate) chain: Option<Said<Vec<ChainItem>>>,
    pub(crate) priority: Option<Said<i32>>,
    pub(crate) last: Option<Said<bool>>,
    pub(crate) enabled: Option<Said<bool>>,
    pub(crate) evidence: Option<Said<Evidence>>,
}

/// What a file says about a table: its fields are those of every row.
#[derive(Debug)]
pub(crate) struct StatedTable {
    pub(crate) name: Name,
    /// No chain: that is each row's own.
    pub(crate) fields: Fields,
    /// How its rows are to be read, if it has rows.
    pub(crate) layout: Layout,
    pub(crate) rows: Vec<StatedRow>,
}

/// How rows are to be read, as it is written: `["world"]`, and `["host/one_shot", "nccl"]`.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) key: Option<String>,
    pub(crate) columns: Option<String>,
    /// Which of the two the rows lack. What it should be may stand in a lower file: the mistake is told
    /// when those are read.
    pub(crate) lacks: Vec<&'static str>,
}

impl Layout {
    /// What is written under `key` or `columns`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        if name == "key" { self.key.as_deref() } else { self.columns.as_deref() }
    }
}

/// A row of a table.
#[derive(Debug)]
pub(crate) struct StatedRow {
    pub(crate) name: Name,
    /// The part of its match that its name states.
    pub(crate) keys: Match,
    pub(crate) chain: Said<Vec<ChainItem>>,
}

/// One position of a written chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainItem {
    pub(crate) span: Range<usize>,
    pub(crate) what: Item,
}

/// What stands there.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Candidate(Candidate),
    /// The chain of this preset.
    Preset(String),
}

/// `[preset.<id>]`: a chain that others name.
#[derive(Debug)]
pub(crate) struct StatedPreset {
    pub(crate) name: Name,
    pub(crate) chain: Vec<Candidate>,
}
