//! `chain`: the candidates of a rule, in order.

use crossover_core::policy::{Basis, ByteRange, Candidate};
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Reader, in_order};
use crate::bytes::{parse_range, size_text};
use crate::diagnostic::Code;
use crate::suggest;
use crate::target::{NoTarget, Target};

const KEYS: [&str; 4] = ["use", "bytes", "bytes_of", "optional"];

/// Reads the chain of a rule whose own `bytes_of` is `basis`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    basis: Basis,
) -> Option<Vec<Candidate>> {
    let Some(array) = value.get_ref().as_array() else {
        return reader.mistyped("chain", "a list such as `[{ use = \"host\" }]`", value);
    };
    if array.is_empty() {
        let help = "to take a rule away, write `enabled = false`";
        reader.refuse_with_help(Code::Unknown, value.span(), "the chain is empty", help);
        return None;
    }
    Some(array.iter().filter_map(|item| candidate(reader, item, basis)).collect())
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

fn candidate(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    basis_of_rule: Basis,
) -> Option<Candidate> {
    let Some(table) = value.get_ref().as_table() else {
        return reader.mistyped("chain", "tables such as `{ use = \"host\" }`", value);
    };
    let mut target = None;
    let mut bytes = ByteRange::ANY;
    let mut basis = basis_of_rule;
    let mut optional = false;
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "use" => target = reader.text("use", value).map(|text| (Target::parse(text), value)),
            "bytes" => bytes = range(reader, value).unwrap_or(bytes),
            "bytes_of" => basis = self::basis(reader, value).unwrap_or(basis),
            "optional" => optional = reader.boolean("optional", value).unwrap_or(optional),
            _ => reader.unknown_key(key, "a candidate", &KEYS),
        }
    }
    if !table.contains_key("use") {
        let help = "write `use = \"backend\"` or `use = \"backend/algorithm\"`";
        reader.refuse_with_help(Code::Unknown, value.span(), "the candidate has no `use`", help);
    }
    let (target, written) = target?;
    if let Err(NoTarget { message, help, absent }) = target.resolve(reader.registry)
        && !(absent && optional)
    {
        let shared = "; `optional = true` allows it to be absent";
        let help = if absent { help + shared } else { help };
        reader.refuse_with_help(Code::Backend, written.span(), message, help);
    }
    Some(Candidate {
        backend: target.backend,
        algorithm: target.algorithm,
        bytes,
        basis,
        optional,
        params: Vec::new(),
    })
}

fn range(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<ByteRange> {
    if let DeValue::Integer(number) = value.get_ref() {
        let message = match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(bytes) => format!("`{number}` has no unit: write `\"{}\"`", size_text(bytes)),
            Err(_) => format!("`{number}` is no size"),
        };
        reader.refuse(Code::Size, value.span(), message);
        return None;
    }
    match parse_range(reader.text("bytes", value)?) {
        Ok(range) => Some(range),
        Err(e) => {
            reader.refuse(e.code(), value.span(), e.to_string());
            None
        }
    }
}
