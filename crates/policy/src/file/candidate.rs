//! One candidate of a chain: `{ use = "host/one_shot", bytes = "..=64KiB" }`.

use std::ops::Range;

use crossover_core::backend::Algorithm;
use crossover_core::policy::{Basis, ByteRange, Candidate};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, in_order};
use super::{chain, params};
use crate::bytes::{parse_range, parse_size, size_text};
use crate::diagnostic::Code;
use crate::target::{NoTarget, Target};

pub(super) const KEYS: [&str; 5] = ["use", "bytes", "bytes_of", "params", "optional"];

/// Reads the candidate that stands at `span`, in a rule whose own `bytes_of` is `basis`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    span: Range<usize>,
    table: &DeTable<'_>,
    mut basis: Basis,
) -> Option<Candidate> {
    let mut target = None;
    let mut bytes = ByteRange::ANY;
    let mut set = None;
    let mut optional = false;
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "use" => target = reader.text("use", value).map(|text| (Target::parse(text), value)),
            "bytes" => bytes = range(reader, value).unwrap_or(bytes),
            "bytes_of" => basis = chain::basis(reader, value).unwrap_or(basis),
            "params" => set = Some(value),
            "optional" => optional = reader.boolean("optional", value).unwrap_or(optional),
            _ => reader.unknown_key(key, "a candidate", &KEYS),
        }
    }
    if !table.contains_key("use") {
        let help = "write `use = \"backend\"` or `use = \"backend/algorithm\"`";
        reader.refuse_with_help(Code::Unknown, span, "the candidate has no `use`", help);
    }
    let (target, written) = target?;
    let algorithms = resolve(reader, &target, written.span(), optional);
    let params = set.map(|value| params::read(reader, value, &target, algorithms.as_deref()));
    Some(Candidate {
        backend: target.backend,
        algorithm: target.algorithm,
        bytes,
        basis,
        optional,
        params: params.unwrap_or_default(),
    })
}

/// The algorithms that a target means; `None` if that is not known. A shipped file names every
/// backend and algorithm of the project, and no program need know them all.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    target: &Target,
    span: Range<usize>,
    optional: bool,
) -> Option<Vec<&'static Algorithm>> {
    match target.resolve(reader.registry) {
        Ok(algorithms) => Some(algorithms),
        Err(NoTarget { absent, .. }) if reader.standing.shipped || (absent && optional) => None,
        Err(NoTarget { message, help, absent }) => {
            let shared = "; `optional = true` allows it to be absent";
            let help = if absent { help + shared } else { help };
            reader.refuse_with_help(Code::Backend, span, message, help);
            None
        }
    }
}

pub(super) fn range(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<ByteRange> {
    let text = sized(reader, value)?;
    let range = parse_range(text).map_err(|e| reader.refuse(e.code(), value.span(), e.to_string()));
    range.ok()
}

pub(super) fn size(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<u64> {
    let text = sized(reader, value)?;
    let size = parse_size(text).map_err(|e| reader.refuse(e.code(), value.span(), e.to_string()));
    size.ok()
}

/// The text under `bytes`; a bare number is told its unit.
fn sized<'v>(reader: &mut Reader<'_>, value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
    let DeValue::Integer(number) = value.get_ref() else { return reader.text("bytes", value) };
    let message = match u64::from_str_radix(number.as_str(), number.radix()) {
        Ok(bytes) => format!("`{number}` has no unit: write `\"{}\"`", size_text(bytes)),
        Err(_) => format!("`{number}` is no size"),
    };
    reader.refuse(Code::Size, value.span(), message);
    None
}
