//! `[table.<id>]`: rules that differ in a few match keys and in sizes, as rows and columns.

use crossover_core::policy::{Basis, Match};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::reader::{Reader, in_order};
use super::row::{self, Columns};
use super::rule::{check_id, common, unknown_key};
use super::{Fields, Layout, StatedRow, StatedTable, chain, matching};
use crate::diagnostic::Code;

pub(super) const KEYS: [&str; 10] = [
    "match", "key", "columns", "rows", "params", "last", "priority", "enabled", "bytes_of",
    "evidence",
];
/// What says something about rows alone.
const OF_ROWS: [&str; 4] = ["key", "columns", "params", "bytes_of"];

pub(super) fn read(
    reader: &mut Reader<'_>,
    id: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> Option<StatedTable> {
    check_id(reader, id, "a table");
    let table = reader.table(id.get_ref(), value)?;
    let mut fields = Fields::default();
    let mut basis = Basis::Input;
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "bytes_of" => basis = chain::basis(reader, value).unwrap_or(basis),
            "key" | "columns" | "rows" | "params" => {}
            _ if common(reader, key, value, &mut fields) => {}
            _ => unknown_key(reader, key, "a table", &KEYS),
        }
    }
    let mut layout = Layout::default();
    let rows = match table.get("rows") {
        Some(rows) => {
            let when = fields.when.as_ref().map(|said| &said.value);
            layout = read_layout(reader, table);
            read_rows(reader, table, rows, when, basis)
        }
        None => {
            let keys = in_order(table).into_iter().map(|(key, _)| key);
            for key in keys.filter(|key| OF_ROWS.contains(&key.get_ref().as_ref())) {
                let message = format!("`{}` without rows says nothing", key.get_ref());
                let help = "state the rows as well";
                reader.refuse_with_help(Code::Unknown, key.span(), message, help);
            }
            Vec::new()
        }
    };
    Some(StatedTable { name: reader.name(id), fields, layout, rows })
}

fn read_layout(reader: &Reader<'_>, table: &DeTable<'_>) -> Layout {
    let written = |key: &str| table.get(key).map(|value| reader.written(value.span()));
    let lacks = ["key", "columns"].into_iter().filter(|key| !table.contains_key(*key));
    Layout { key: written("key"), columns: written("columns"), lacks: lacks.collect() }
}

fn read_rows(
    reader: &mut Reader<'_>,
    table: &DeTable<'_>,
    rows: &Spanned<DeValue<'_>>,
    when: Option<&Match>,
    basis: Basis,
) -> Vec<StatedRow> {
    let keys = table.get("key").map(|value| keys(reader, value, when));
    let columns = table.get("columns").map(|value| Columns::read(reader, value));
    let (Some(keys), Some(mut columns)) = (keys.flatten(), columns.flatten()) else {
        return Vec::new();
    };
    if let Some(params) = table.get("params") {
        columns.read_params(reader, params);
    }
    reader.entries("rows", rows, |reader, name, value| {
        row::read(reader, name, value, &keys, &columns, basis)
    })
}

/// The match keys whose values the rows' names state. `None` if they are not all known: what is
/// said of the rows would be wrong.
fn keys(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    when: Option<&Match>,
) -> Option<Vec<String>> {
    let list = reader.list_of("key", value, "name the match keys that rows differ in");
    let mut keys: Vec<String> = Vec::new();
    for item in list {
        let Some(name) = reader.text("key", item) else { continue };
        if !matching::is_key(reader, name, item.span(), "`key`") {
            continue;
        }
        let problem = if keys.iter().any(|key| key == name) {
            Some(format!("`{name}` is in `key` twice"))
        } else if when.is_some_and(|when| matching::constrains(when, name)) {
            Some(format!("`{name}` is in `key`, and in `match` as well"))
        } else {
            None
        };
        match problem {
            Some(problem) => {
                let help = "each row states it in its name: take it out of the other place";
                reader.refuse_with_help(Code::Unknown, item.span(), problem, help);
            }
            None => keys.push(name.to_owned()),
        }
    }
    (!list.is_empty() && keys.len() == list.len()).then_some(keys)
}
