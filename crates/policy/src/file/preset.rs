//! `[preset.<id>]`: a chain with a name. Rules that name it take it as the strongest layer has it.

use crossover_core::policy::Basis;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::reader::{Reader, in_order};
use super::rule::check_id;
use super::{Item, StatedPreset, chain};
use crate::diagnostic::Code;

const KEYS: [&str; 1] = ["chain"];

pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Vec<StatedPreset> {
    reader.entries("preset", value, preset)
}

fn preset(
    reader: &mut Reader<'_>,
    id: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> Option<StatedPreset> {
    check_id(reader, id, "a preset");
    let table = reader.table(id.get_ref(), value)?;
    let mut items = None;
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "chain" => items = chain::read(reader, value, Basis::Input),
            _ => reader.unknown_key(key, "a preset", &KEYS),
        }
    }
    if !table.contains_key("chain") {
        let help = "write `chain = [..]`";
        reader.refuse_with_help(Code::Unknown, id.span(), "the preset has no chain", help);
    }
    let mut chain = Vec::new();
    for item in items.unwrap_or_default() {
        match item.what {
            Item::Candidate(candidate) => chain.push(candidate),
            Item::Preset(name) => {
                let message = format!("preset `{name}` stands in a preset");
                let help = "a preset has candidates alone; a rule may name several presets";
                reader.refuse_with_help(Code::Unknown, item.span, message, help);
            }
        }
    }
    Some(StatedPreset { name: reader.name(id), chain })
}
