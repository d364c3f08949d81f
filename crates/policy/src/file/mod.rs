//! One policy file: text to a [`Document`], or every mistake that is in it.

mod chain;
mod contract;
mod evidence;
mod matching;
mod reader;
mod rule;

use std::ops::Range;

use crossover_core::contract::{Determinism, Deviations};
use crossover_core::policy::{Candidate, Evidence, Match, Origin};
use crossover_core::registry::Registry;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Code, Diagnostic, Source};
use reader::{Reader, in_order};

/// What one file states. Nothing is filled in: a higher file may state a part of a rule.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) source: Source,
    pub(crate) contract: StatedContract,
    /// In the order of the file.
    pub(crate) rules: Vec<StatedRule>,
}

/// What a file says about the contract.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StatedContract {
    pub(crate) determinism: Option<Determinism>,
    pub(crate) accept: Option<Deviations>,
}

/// What a file says about a rule.
#[derive(Debug)]
pub(crate) struct StatedRule {
    pub(crate) id: String,
    /// Of the id, for messages.
    pub(crate) span: Range<usize>,
    pub(crate) origin: Origin,
    pub(crate) enabled: Option<bool>,
    pub(crate) priority: Option<i32>,
    pub(crate) last: Option<bool>,
    pub(crate) when: Option<Match>,
    pub(crate) chain: Option<Vec<Candidate>>,
    pub(crate) evidence: Option<Evidence>,
}

/// The schema that this program reads.
const SCHEMA: i32 = 1;
const KEYS: [&str; 3] = ["schema", "contract", "rule"];
/// Parts of schema 1 that this version does not read: a file with one of them is not misspelt.
const LATER: [&str; 4] = ["table", "preset", "include", "expect"];

impl Document {
    /// Reads a file's text. Backends are looked up in `registry`.
    ///
    /// # Errors
    ///
    /// Every mistake, in the order of the file.
    pub(crate) fn parse(source: Source, registry: &Registry) -> Result<Self, Vec<Diagnostic>> {
        let (root, errors) = DeTable::parse_recoverable(&source.text);
        if !errors.is_empty() {
            // What the parser recovered may not be what was meant: say nothing about that.
            let syntax = |e: &toml::de::Error| {
                let span = e.span().unwrap_or(0..0);
                source.diagnostic(Code::Syntax, span, format!("not TOML: {}", e.message()), None)
            };
            return Err(errors.iter().map(syntax).collect());
        }
        let mut reader = Reader { source: &source, registry, problems: Vec::new() };
        let (contract, rules) = read(&mut reader, root.get_ref());
        let mut problems = reader.problems;
        if problems.is_empty() {
            return Ok(Document { source, contract, rules });
        }
        problems.sort_by_key(|p| (p.line, p.column));
        Err(problems)
    }
}

fn read(reader: &mut Reader<'_>, root: &DeTable<'_>) -> (StatedContract, Vec<StatedRule>) {
    let mut contract = StatedContract::default();
    let mut rules = Vec::new();
    for (key, value) in in_order(root) {
        match key.get_ref().as_ref() {
            "schema" => schema(reader, value),
            "contract" => contract = contract::read(reader, value),
            "rule" => {
                if let Some(table) = reader.table("rule", value) {
                    rules = in_order(table)
                        .into_iter()
                        .filter_map(|(id, rule)| rule::read(reader, id, rule))
                        .collect();
                }
            }
            later if LATER.contains(&later) => reader.refuse(
                Code::Unknown,
                key.span(),
                format!("`{later}` is not supported yet by this version"),
            ),
            _ => reader.unknown_key(key, "a policy", &KEYS),
        }
    }
    if !root.contains_key("schema") {
        let help = format!("write `schema = {SCHEMA}` as the first line");
        reader.refuse_with_help(Code::Unknown, 0..0, "the file does not state its schema", help);
    }
    (contract, rules)
}

fn schema(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
    if let Some(schema) = reader.integer("schema", value)
        && schema != SCHEMA
    {
        let message = format!("schema {schema} is unknown; this program reads schema {SCHEMA}");
        reader.refuse(Code::Unknown, value.span(), message);
    }
}
