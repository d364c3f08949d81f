//! `evidence`: where a rule's numbers come from. It decides nothing; people read it.

use crossover_core::policy::{Evidence, EvidenceKind};
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Reader, in_order};

pub(crate) const KEYS: [&str; 13] = [
    "kind",
    "from",
    "device",
    "driver",
    "cuda",
    "lib",
    "world",
    "mode",
    "date",
    "raw",
    "raw_digest",
    "margin_pct",
    "note",
];

pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Evidence> {
    let mut evidence = Evidence::default();
    for (key, value) in in_order(reader.table("evidence", value)?) {
        let name = key.get_ref().as_ref();
        match name {
            "kind" => evidence.kind = reader.word::<EvidenceKind>(name, value),
            _ if !KEYS.contains(&name) => reader.unknown_key(key, "`evidence`", &KEYS),
            _ => match scalar(value.get_ref()) {
                Some(text) => evidence.facts.push((name.to_owned(), text)),
                None => reader.mistyped(name, "a string or a number", value).unwrap_or_default(),
            },
        }
    }
    Some(evidence)
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Datetime(date) => Some(date.to_string()),
        DeValue::Boolean(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
