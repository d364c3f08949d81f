//! The columns and rows of a table: each row is a rule, and each of its cells a candidate.

use crossover_core::backend::Algorithm;
use crossover_core::policy::{Basis, ByteRange, Candidate, Match, ParamValue};
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::reader::{Reader, in_order};
use super::{ChainItem, Item, StatedRow, candidate, matching, params};
use crate::diagnostic::Code;
use crate::suggest;
use crate::target::Target;

const COLUMN_KEYS: [&str; 2] = ["use", "optional"];
const CELL_KEYS: [&str; 2] = ["bytes", "params"];
/// The cell of a column that never serves the row.
const NEVER: &str = "-";

/// What the columns of a table name, in order.
pub(super) struct Columns(Vec<Column>);

struct Column {
    target: Target,
    /// `None` if the backend is not known.
    algorithms: Option<Vec<&'static Algorithm>>,
    optional: bool,
    params: Vec<(String, ParamValue)>,
}

impl Columns {
    /// Reads `columns`; `None` if not each of them can be read.
    pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Columns> {
        let list = reader.list_of("columns", value, "a table has at least one column");
        let columns: Vec<Column> = list.iter().filter_map(|item| column(reader, item)).collect();
        (!list.is_empty() && columns.len() == list.len()).then_some(Columns(columns))
    }

    /// Reads `params`: by column, what each of its cells sets.
    pub(super) fn read_params(&mut self, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        let Some(table) = reader.table("params", value) else { return };
        for (key, value) in in_order(table) {
            let named = |column: &&mut Column| column.target.to_string() == *key.get_ref();
            let mut columns: Vec<&mut Column> = self.0.iter_mut().filter(named).collect();
            let Some(first) = columns.first() else {
                let names: Vec<String> = self.0.iter().map(|c| c.target.to_string()).collect();
                let help = suggest::help(key.get_ref(), names.iter().map(String::as_str));
                let message = format!("the table has no column `{}`", key.get_ref());
                reader.refuse_with_help(Code::Unknown, key.span(), message, help);
                continue;
            };
            let set = params::read(reader, value, &first.target, first.algorithms.as_deref());
            for column in &mut columns {
                column.params.clone_from(&set);
            }
        }
    }
}

/// Reads `"host/one_shot"`, or `{ use = "nccl", optional = true }`.
fn column(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Column> {
    let mut optional = false;
    let (name, span) = match value.get_ref().as_table() {
        None => (reader.text("columns", value)?, value.span()),
        Some(table) => {
            let mut name = None;
            for (key, value) in in_order(table) {
                match key.get_ref().as_ref() {
                    "use" => name = reader.text("use", value).map(|text| (text, value.span())),
                    "optional" => optional = reader.boolean("optional", value).unwrap_or(false),
                    _ => reader.unknown_key(key, "a column", &COLUMN_KEYS),
                }
            }
            if !table.contains_key("use") {
                let help = "write `\"backend/algorithm\"`, or `{ use = .., optional = true }`";
                reader.refuse_with_help(
                    Code::Unknown,
                    value.span(),
                    "the column has no `use`",
                    help,
                );
            }
            name?
        }
    };
    let target = Target::parse(name);
    let algorithms = candidate::resolve(reader, &target, span, optional);
    Some(Column { target, algorithms, optional, params: Vec::new() })
}

/// Reads `rows.<name> = [..]`, where the name has the values of `keys` with `-` between.
pub(super) fn read(
    reader: &mut Reader<'_>,
    name: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    keys: &[String],
    columns: &Columns,
    basis: Basis,
) -> Option<StatedRow> {
    let when = row_match(reader, name, keys);
    let Some(cells) = value.get_ref().as_array() else {
        return reader.mistyped("rows", "lists with a cell for each column", value);
    };
    if cells.len() != columns.0.len() {
        refuse_count(reader, name, value, cells.len(), columns);
        return None;
    }
    let mut chain = Vec::new();
    for (cell, column) in cells.iter().zip(&columns.0) {
        let candidate = read_cell(reader, cell, column, basis);
        let item = |c| ChainItem { span: cell.span(), what: Item::Candidate(c) };
        chain.extend(candidate.map(item));
    }
    if cells.iter().all(|cell| cell.get_ref().as_str() == Some(NEVER)) {
        let message = format!("row `{}` has no candidate", name.get_ref());
        reader.refuse_with_help(Code::Unknown, value.span(), message, "leave the row out");
    }
    let chain = reader.said(name, Some(chain))?;
    Some(StatedRow { name: reader.name(name), keys: when?, chain })
}

/// What a row's name demands.
fn row_match(
    reader: &mut Reader<'_>,
    name: &Spanned<DeString<'_>>,
    keys: &[String],
) -> Option<Match> {
    // A group's tag may have a dash, where it is alone.
    let parts: Vec<&str> = match keys.len() {
        1 => vec![name.get_ref()],
        _ => name.get_ref().split('-').collect(),
    };
    if parts.len() != keys.len() {
        let values = keys.iter().map(|key| format!("<{key}>")).collect::<Vec<_>>().join("-");
        let message = format!("row `{}` is not named by `key`", name.get_ref());
        let help = format!("the name of a row is `{values}`");
        reader.refuse_with_help(Code::Unknown, name.span(), message, help);
        return None;
    }
    let mut when = Match::default();
    for (key, part) in keys.iter().zip(parts) {
        let value = Spanned::new(name.span(), DeValue::String(part.into()));
        matching::read_key(reader, key, &value, &mut when);
    }
    Some(when)
}

fn refuse_count(
    reader: &mut Reader<'_>,
    name: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    cells: usize,
    columns: &Columns,
) {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (has, wants) = (plural(cells, "cell"), plural(columns.0.len(), "column"));
    let message = format!("row `{}` has {has} for {wants}", name.get_ref());
    let missing = columns.0.iter().skip(cells).map(|column| format!("`{}`", column.target));
    let missing = missing.collect::<Vec<_>>().join(", ");
    let help = match missing.as_str() {
        "" => "take the cells out that are too many".to_owned(),
        missing => {
            format!("no cell is left for {missing}; write `\"-\"` where a column never serves")
        }
    };
    reader.refuse_with_help(Code::Unknown, value.span(), message, help);
}

/// Reads `"..=64KiB"`, `"-"`, or `{ bytes = "..", params = {..} }`.
fn read_cell(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    column: &Column,
    basis: Basis,
) -> Option<Candidate> {
    let mut bytes = ByteRange::ANY;
    let mut params = column.params.clone();
    match value.get_ref() {
        DeValue::String(text) if text == NEVER => return None,
        DeValue::Table(table) => {
            for (key, value) in in_order(table) {
                match key.get_ref().as_ref() {
                    "bytes" => bytes = candidate::range(reader, value)?,
                    "params" => {
                        let known = column.algorithms.as_deref();
                        let own = params::read(reader, value, &column.target, known);
                        params.retain(|(name, _)| own.iter().all(|(own, _)| own != name));
                        params.extend(own);
                    }
                    _ => reader.unknown_key(key, "a cell", &CELL_KEYS),
                }
            }
        }
        _ => bytes = candidate::range(reader, value)?,
    }
    Some(Candidate {
        backend: column.target.backend.clone(),
        algorithm: column.target.algorithm.clone(),
        bytes,
        basis,
        optional: column.optional,
        params,
    })
}
