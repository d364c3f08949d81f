//! `chain`: the candidates of a rule, in order.

use crossover_core::policy::Basis;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, in_order};
use super::{ChainItem, Item, candidate};
use crate::diagnostic::Code;
use crate::suggest;

/// Reads the chain of a rule whose own `bytes_of` is `basis`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    basis: Basis,
) -> Option<Vec<ChainItem>> {
    let Some(array) = value.get_ref().as_array() else {
        return reader.mistyped("chain", "a list such as `[{ use = \"host\" }]`", value);
    };
    if array.is_empty() {
        let help = "to take a rule away, write `enabled = false`";
        reader.refuse_with_help(Code::Unknown, value.span(), "the chain is empty", help);
        return None;
    }
    Some(array.iter().filter_map(|item| read_item(reader, item, basis)).collect())
}

/// Reads `bytes_of`.
pub(super) fn basis(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Basis> {
    match reader.text("bytes_of", value)? {
        "input" => Some(Basis::Input),
        "output" => Some(Basis::Output),
        other => {
            let message = format!("`bytes_of` is `input` or `output`, not `{other}`");
            let help = suggest::help(other, ["input", "output"]);
            reader.refuse_with_help(Code::Unknown, value.span(), message, help);
            None
        }
    }
}

fn read_item(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    basis: Basis,
) -> Option<ChainItem> {
    let Some(table) = value.get_ref().as_table() else {
        return reader.mistyped("chain", "tables such as `{ use = \"host\" }`", value);
    };
    let what = if table.contains_key("preset") {
        Item::Preset(preset(reader, table)?)
    } else {
        Item::Candidate(candidate::read(reader, value.span(), table, basis)?)
    };
    Some(ChainItem { span: value.span(), what })
}

/// `{ preset = "id" }`.
fn preset(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Option<String> {
    let mut name = None;
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "preset" => name = reader.text("preset", value).map(str::to_owned),
            other => {
                let message = format!("`{other}` beside `preset` says nothing");
                let help = "a preset stands for its candidates as they are";
                reader.refuse_with_help(Code::Unknown, key.span(), message, help);
            }
        }
    }
    name
}
