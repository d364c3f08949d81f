//! JSON values of the kinds that are expected, or words about those that are not.

use std::collections::HashMap;
use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use crate::import::findings::{Findings, short};

pub(super) fn span(value: &Value<'_>) -> Range<usize> {
    let range = value.range();
    range.start..range.end
}

pub(super) fn object<'v, 't>(
    findings: &mut Findings<'_>,
    what: &str,
    value: &'v Value<'t>,
) -> Option<&'v Object<'t>> {
    let object = value.as_object();
    if object.is_none() {
        mistyped(findings, what, value, "an object, `{ .. }`");
    }
    object
}

pub(super) fn array<'v, 't>(
    findings: &mut Findings<'_>,
    what: &str,
    value: &'v Value<'t>,
) -> &'v [Value<'t>] {
    match value.as_array() {
        Some(array) => &array.elements,
        None => {
            mistyped(findings, what, value, "a list, `[ .. ]`");
            &[]
        }
    }
}

pub(super) fn text<'v>(
    findings: &mut Findings<'_>,
    what: &str,
    value: &'v Value<'_>,
) -> Option<&'v str> {
    let text = value.as_string_lit();
    if text.is_none() {
        mistyped(findings, what, value, "a string");
    }
    text.map(|text| text.value.as_ref())
}

/// A number that is not negative; the greatest for `"inf"`.
pub(super) fn number(findings: &mut Findings<'_>, what: &str, value: &Value<'_>) -> Option<u64> {
    let number = match value {
        Value::StringLit(text) if ["inf", "Inf", "INF"].contains(&text.value.as_ref()) => {
            Some(u64::MAX)
        }
        Value::NumberLit(number) => number.value.parse().ok(),
        _ => None,
    };
    if number.is_none() {
        mistyped(findings, what, value, "a whole number from 0, or `\"inf\"`");
    }
    number
}

/// Complains of keys that are unknown, there twice, or missing. Any key is known if none is.
pub(super) fn keys(
    findings: &mut Findings<'_>,
    object: &Object<'_>,
    what: &str,
    known: &[&str],
    required: &[&str],
) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for property in &object.properties {
        let name = property.name.as_str();
        let place = property.range.start..property.range.start + name.len() + 2;
        if !known.is_empty() && !known.contains(&name) {
            let message = format!("unknown key `{}` in {what}", short(name));
            findings.unknown(place.clone(), message, name, known.iter().copied());
        }
        match seen.get(name) {
            Some(first) => {
                let message = format!("`{}` is there twice", short(name));
                let line = findings.line(*first);
                findings.error(place, message, format!("it is on line {line} already"));
            }
            None => drop(seen.insert(name, property.range.start)),
        }
    }
    for name in required.iter().filter(|name| object.get(name).is_none()) {
        let message = format!("{what} has no `{name}`");
        let place = object.range.start..object.range.start + 1;
        findings.error(place, message, format!("write `\"{name}\": ..`"));
    }
}

fn mistyped(findings: &mut Findings<'_>, what: &str, value: &Value<'_>, wanted: &str) {
    let message = format!("{what} is {wanted}");
    findings.error(span(value), message, "Open MPI would drop the whole file, without a word");
}
