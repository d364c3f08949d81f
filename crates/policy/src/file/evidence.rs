//! `evidence`: where a rule's numbers come from. It decides nothing; people read it.

use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Reader, in_order};
use crate::diagnostic::Code;
use crate::suggest;

const KINDS: [&str; 4] = ["default", "ported", "measured", "tuned"];
const KEYS: [&str; 13] = [
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

/// The evidence in words, such as `measured: device B200, world 4`.
pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<String> {
    let mut kind = None;
    let mut rest = Vec::new();
    for (key, value) in in_order(reader.table("evidence", value)?) {
        let name = key.get_ref().as_ref();
        match name {
            "kind" => kind = read_kind(reader, value),
            _ if !KEYS.contains(&name) => reader.unknown_key(key, "`evidence`", &KEYS),
            _ => match scalar(value.get_ref()) {
                Some(text) if name == "note" => rest.push(text),
                Some(text) => rest.push(format!("{name} {text}")),
                None => reader.mistyped(name, "a string or a number", value).unwrap_or_default(),
            },
        }
    }
    Some(match kind {
        Some(kind) if rest.is_empty() => kind,
        Some(kind) => format!("{kind}: {}", rest.join(", ")),
        None => rest.join(", "),
    })
}

fn read_kind(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<String> {
    let kind = reader.text("kind", value)?;
    if KINDS.contains(&kind) {
        return Some(kind.to_owned());
    }
    let message = format!("unknown kind of evidence `{kind}`");
    reader.refuse_with_help(Code::Unknown, value.span(), message, suggest::help(kind, KINDS));
    None
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
