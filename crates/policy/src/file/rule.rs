//! `[rule.<id>]`.

use crossover_core::policy::Basis;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::reader::{Reader, in_order};
use super::{Fields, StatedRule, candidate, chain, evidence, matching};
use crate::diagnostic::Code;

pub(super) const KEYS: [&str; 7] =
    ["match", "chain", "priority", "last", "enabled", "bytes_of", "evidence"];

pub(super) fn read(
    reader: &mut Reader<'_>,
    id: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> Option<StatedRule> {
    // The name of a row is its table's matter: whether there is such a row shows in the stack.
    if !id.get_ref().split_once('@').is_some_and(|(table, row)| is_id(table) && !row.is_empty()) {
        check_id(reader, id, "a rule");
    }
    let table = reader.table(id.get_ref(), value)?;
    let mut fields = Fields::default();
    let mut chain = None;
    let mut basis = None;
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "chain" => chain = Some((key, value)),
            "bytes_of" => basis = chain::basis(reader, value).map(|basis| (basis, key)),
            _ if common(reader, key, value, &mut fields) => {}
            word if candidate::KEYS.contains(&word) || word == "preset" => {
                let beside = if matches!(word, "use" | "preset") { "" } else { "use = .., " };
                let help = format!("`{word}` belongs in `chain = [{{ {beside}{word} = .. }}]`");
                let message = format!("unknown key `{word}` in a rule");
                reader.refuse_with_help(Code::Unknown, key.span(), message, help);
            }
            _ => unknown_key(reader, key, "a rule", &KEYS),
        }
    }
    // After the walk, since `bytes_of` may stand below the chain that it is about.
    match (chain, basis) {
        (Some((key, chain)), basis) => {
            let basis = basis.map_or(Basis::Input, |(basis, _)| basis);
            let items = chain::read(reader, chain, basis);
            fields.chain = reader.said(key, items);
        }
        (None, Some((_, key))) => {
            let message = "`bytes_of` without a chain says nothing";
            reader.refuse_with_help(Code::Unknown, key.span(), message, "state the chain as well");
        }
        (None, None) => {}
    }
    Some(StatedRule { name: reader.name(id), fields })
}

/// Reads what rules and tables have in common; `false` if this key is nothing of that.
pub(super) fn common(
    reader: &mut Reader<'_>,
    key: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    fields: &mut Fields,
) -> bool {
    match key.get_ref().as_ref() {
        "match" => {
            let when = matching::read(reader, value);
            fields.when = reader.said(key, when);
        }
        "priority" => {
            let priority = reader.integer("priority", value);
            fields.priority = reader.said(key, priority);
        }
        "last" => {
            let last = reader.boolean("last", value);
            fields.last = reader.said(key, last);
        }
        "enabled" => {
            let enabled = reader.boolean("enabled", value);
            fields.enabled = reader.said(key, enabled);
        }
        "evidence" => {
            let evidence = evidence::read(reader, value);
            fields.evidence = reader.said(key, evidence);
        }
        _ => return false,
    }
    true
}

/// A key that a rule or a table does not have; it may be one of its match.
pub(super) fn unknown_key(
    reader: &mut Reader<'_>,
    key: &Spanned<DeString<'_>>,
    place: &str,
    known: &[&'static str],
) {
    let word = key.get_ref().as_ref();
    if !matching::KEYS.contains(&word) {
        return reader.unknown_key(key, place, known);
    }
    let message = format!("unknown key `{word}` in {place}");
    let help = format!("`{word}` belongs in `match`: `match = {{ {word} = .. }}`");
    reader.refuse_with_help(Code::Unknown, key.span(), message, help);
}

/// `what` is `a rule`, `a table` or `a preset`.
pub(super) fn check_id(reader: &mut Reader<'_>, id: &Spanned<DeString<'_>>, what: &str) {
    if !is_id(id.get_ref()) {
        let message = format!("`{}` cannot name {what}", id.get_ref());
        let help = "a name has lower-case letters, digits, `-` and `_`";
        reader.refuse_with_help(Code::Unknown, id.span(), message, help);
    }
}

fn is_id(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !text.is_empty() && text.chars().all(legal)
}
