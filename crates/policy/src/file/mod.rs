//! One policy file: text to a [`Document`], and every mistake that is in it.

mod candidate;
mod chain;
mod contract;
mod evidence;
mod expect;
mod include;
mod matching;
mod params;
mod preset;
mod reader;
mod row;
mod rule;
mod stated;
mod table;

use crossover_core::policy::Layer;
use crossover_core::registry::Registry;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Code, Diagnostic, Source};
pub(crate) use evidence::KEYS as EVIDENCE_KEYS;
pub(crate) use expect::Expect;
pub(crate) use include::Include;
use reader::{Reader, in_order};
pub(crate) use stated::{
    ChainItem, Entry, Fields, Item, Layout, Name, Said, StatedContract, StatedPreset, StatedRow,
    StatedRule, StatedTable,
};

/// What one file states.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) contract: StatedContract,
    pub(crate) includes: Vec<Include>,
    pub(crate) presets: Vec<StatedPreset>,
    /// Rules and tables, in the order of the file.
    pub(crate) entries: Vec<Entry>,
    pub(crate) expects: Vec<Expect>,
}

impl Document {
    pub(crate) fn tables(&self) -> impl Iterator<Item = &StatedTable> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Table(table) => Some(table),
            Entry::Rule(_) => None,
        })
    }
}

/// How a document came into the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) layer: Layer,
    /// Is it compiled in?
    pub(crate) shipped: bool,
    /// Did only other documents name it?
    pub(crate) included: bool,
}

impl Standing {
    /// Is it a shipped file that was only included? Nobody who reads a finding can change it.
    pub(crate) fn is_borrowed(self) -> bool {
        self.shipped && self.included
    }
}

/// The schema that this program reads.
const SCHEMA: i32 = 1;
const KEYS: [&str; 7] = ["schema", "include", "contract", "preset", "rule", "table", "expect"];

impl Document {
    /// Reads a file's text as far as it can be read; its mistakes are added to `problems`, in the
    /// order of the file. Backends are looked up in `registry`.
    pub(crate) fn parse(
        source: &Source,
        standing: Standing,
        registry: &Registry,
        problems: &mut Vec<Diagnostic>,
    ) -> Document {
        let (root, errors) = DeTable::parse_recoverable(&source.text);
        if !errors.is_empty() {
            // What the parser recovered may not be what was meant: say nothing about that.
            problems.extend(errors.iter().map(|e| {
                let span = e.span().unwrap_or(0..0);
                source.diagnostic(Code::Syntax, span, format!("not TOML: {}", e.message()), None)
            }));
            return Document::default();
        }
        let mut reader = Reader::new(source, standing, registry);
        let document = read(&mut reader, root.get_ref());
        reader.problems.sort_by_key(|p| (p.line, p.column));
        problems.append(&mut reader.problems);
        document
    }
}

fn read(reader: &mut Reader<'_>, root: &DeTable<'_>) -> Document {
    let mut document = Document::default();
    for (key, value) in in_order(root) {
        match key.get_ref().as_ref() {
            "schema" => schema(reader, value),
            "include" => document.includes = include::read(reader, value),
            "contract" => document.contract = contract::read(reader, value),
            "preset" => document.presets = preset::read(reader, value),
            "rule" => {
                let rules = reader.named_entries("rule", value, &rule::KEYS, rule::read);
                document.entries.extend(rules.into_iter().map(Entry::Rule));
            }
            "table" => {
                let tables = reader.named_entries("table", value, &table::KEYS, table::read);
                document.entries.extend(tables.into_iter().map(Entry::Table));
            }
            "expect" => document.expects = expect::read(reader, value),
            _ => reader.unknown_key(key, "a policy", &KEYS),
        }
    }
    if !root.contains_key("schema") {
        let help = format!("write `schema = {SCHEMA}` as the first line");
        reader.refuse_with_help(Code::Unknown, 0..0, "the file does not state its schema", help);
    }
    document.entries.sort_by_key(|entry| entry.name().span.start);
    refuse_twins(reader, &document.entries);
    document
}

fn schema(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
    if let Some(schema) = reader.integer("schema", value)
        && schema != SCHEMA
    {
        let message = format!("schema {schema} is unknown; this program reads schema {SCHEMA}");
        reader.refuse(Code::Unknown, value.span(), message);
    }
}

/// A rule, a table and a row of one file have names of their own. (Two rules of one name are no
/// TOML.)
fn refuse_twins(reader: &mut Reader<'_>, entries: &[Entry]) {
    let mut first_lines = std::collections::HashMap::new();
    let mut named = |id: String, name: &Name| {
        if let Some(line) = first_lines.insert(id.clone(), name.line) {
            let message =
                format!("`{id}` is named twice: on line {line} and on line {}", name.line);
            let help = "give one of them another name";
            reader.refuse_with_help(Code::Unknown, name.span.clone(), message, help);
        }
    };
    for entry in entries {
        named(entry.name().text.clone(), entry.name());
        if let Entry::Table(table) = entry {
            for row in &table.rows {
                named(row_id(&table.name.text, &row.name.text), &row.name);
            }
        }
    }
}

/// The id of the rule that a row is.
pub(crate) fn row_id(table: &str, row: &str) -> String {
    format!("{table}@{row}")
}
