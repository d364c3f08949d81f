//! `params`: what a candidate sets of its algorithm.

use crossover_core::backend::{Algorithm, Param, Values};
use crossover_core::bytes::size_text;
use crossover_core::facts::Caches;
use crossover_core::policy::{CacheLevel, ParamValue};
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Reader, in_order};
use crate::bytes::parse_size;
use crate::diagnostic::Code;
use crate::suggest;
use crate::target::Target;

/// Reads the params of a target. They are checked against what `algorithms` have; not at all where
/// the backend is not known. Of a bare backend, one algorithm has to take each.
pub(super) fn read(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    target: &Target,
    algorithms: Option<&[&'static Algorithm]>,
) -> Vec<(String, ParamValue)> {
    let Some(table) = reader.table("params", value) else { return Vec::new() };
    let mut params = Vec::new();
    for (key, value) in in_order(table) {
        let name = key.get_ref().as_ref();
        let Some(stated) = param_value(reader, name, value) else { continue };
        let Some(algorithms) = algorithms else {
            params.push((name.to_owned(), stated));
            continue;
        };
        let known: Vec<&Param> = algorithms.iter().flat_map(|a| a.params).collect();
        let named: Vec<&Param> = known.iter().copied().filter(|p| p.name == name).collect();
        if named.is_empty() {
            let mut names: Vec<&str> = known.iter().map(|p| p.name).collect();
            names.sort_unstable();
            names.dedup();
            let message = format!("`{target}` has no param `{name}`");
            reader.refuse_with_help(Code::Unknown, key.span(), message, suggest::help(name, names));
        } else if let Some(owner) = passed_over(algorithms, name) {
            let message = format!("`{target}` alone leaves all to the library: no `{name}` is set");
            let help =
                format!("write `use = \"{}/{}\"`, which takes it", target.backend, owner.name);
            reader.refuse_with_help(Code::Unknown, key.span(), message, help);
        } else if named.iter().any(|param| fits(&stated, param)) {
            params.push((name.to_owned(), stated));
        } else {
            let mut wants: Vec<String> = named.iter().map(|p| in_words(p.values)).collect();
            wants.dedup();
            let wants = wants.join(", or ");
            let message = format!("`{name}` of `{target}` takes {wants}, not `{stated}`");
            reader.refuse(Code::Unknown, value.span(), message);
        }
    }
    params
}

/// Whose param it is, where a bare backend's first algorithm is the library's own choice, which takes
/// every call first and has no such param.
fn passed_over(algorithms: &[&'static Algorithm], param: &str) -> Option<&'static Algorithm> {
    let has = |algorithm: &Algorithm| algorithm.params.iter().any(|p| p.name == param);
    let (first, rest) = algorithms.split_first()?;
    let is_passed_over = first.name.is_empty() && !has(first);
    rest.iter().copied().find(|algorithm| is_passed_over && has(algorithm))
}

/// `16`, `"64KiB"`, `"128/world"`, `"llc/4"`, `"ring"` or `true`.
fn param_value(
    reader: &mut Reader<'_>,
    name: &str,
    value: &Spanned<DeValue<'_>>,
) -> Option<ParamValue> {
    let want = "a number, a size, a word, or true or false";
    match value.get_ref() {
        DeValue::Boolean(flag) => Some(ParamValue::Flag(*flag)),
        DeValue::Integer(n) => match u64::from_str_radix(n.as_str(), n.radix()) {
            Ok(count) => Some(ParamValue::Count(count)),
            Err(_) => {
                reader.refuse(Code::Unknown, value.span(), format!("`{n}` is no count of 64 bits"));
                None
            }
        },
        DeValue::String(text) => match share(text) {
            Some(Some(share)) => Some(share),
            Some(None) => {
                let message = format!(
                    "`{text}` is no share: write it as `\"128/world\"`, or, of a cache, as \
                     `\"l2\"` or `\"llc/4/world\"`"
                );
                reader.refuse(Code::Unknown, value.span(), message);
                None
            }
            None => Some(match parse_size(text) {
                Ok(bytes) => ParamValue::Bytes(bytes),
                Err(_) => ParamValue::Word(text.to_string()),
            }),
        },
        _ => reader.mistyped(name, want, value),
    }
}

/// `128/world`, `l2`, `llc/4` or `llc/4/world`; `Some(None)` if it is meant as one and is none.
fn share(text: &str) -> Option<Option<ParamValue>> {
    let (of, per_world) = match text.strip_suffix("/world") {
        Some(of) => (of, true),
        None => (text, false),
    };
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None, // `parse` would take a sign
    };
    let parts = |text: &str| number(text).filter(|parts| *parts > 0);
    let (cache, share) =
        of.split_once('/').map_or((of, None), |(cache, share)| (cache, Some(share)));
    match cache.parse::<CacheLevel>() {
        Ok(level) => {
            let parts = share.map_or(Some(1), parts);
            Some(parts.map(|parts| ParamValue::Cache { level, parts, per_world }))
        }
        Err(_) if per_world => Some(number(of).map(ParamValue::PerWorld)),
        Err(_) => None,
    }
}

/// Can the param be that? A share of the ranks, if it can be in some group.
fn fits(value: &ParamValue, param: &Param) -> bool {
    match (value, param.values) {
        (ParamValue::PerWorld(count), Values::Count { min, .. }) => *count >= min,
        (ParamValue::Cache { .. }, Values::Bytes { .. }) => true,
        _ => value.resolve(param, 1, Caches::default()).is_some(),
    }
}

fn in_words(values: Values) -> String {
    match values {
        Values::Count { min, max } => format!("a number from {min} to {max}"),
        Values::Bytes { min, max } => {
            let most = match max {
                u64::MAX => format!("bytes from {} on, or `none`", size_text(min)),
                _ => format!("bytes from {} to {}", size_text(min), size_text(max)),
            };
            format!("{most}, such as `64KiB`, or a share of a cache, such as `l2/2`")
        }
        Values::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("one of {}", words.join(", "))
        }
        Values::Flag => "true or false".to_owned(),
    }
}
