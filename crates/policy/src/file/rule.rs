//! `[rule.<id>]`.

use crossover_core::policy::{Basis, Origin};
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::reader::{Reader, in_order};
use super::{StatedRule, chain, evidence, matching};
use crate::diagnostic::Code;

const KEYS: [&str; 7] = ["match", "chain", "priority", "last", "enabled", "bytes_of", "evidence"];

pub(super) fn read(
    reader: &mut Reader<'_>,
    id: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> Option<StatedRule> {
    check_id(reader, id);
    let table = reader.table(id.get_ref(), value)?;
    let mut rule = StatedRule {
        id: id.get_ref().to_string(),
        span: id.span(),
        origin: Origin {
            file: reader.source.name.clone(),
            line: reader.source.line(id.span().start),
        },
        enabled: None,
        priority: None,
        last: None,
        when: None,
        chain: None,
        evidence: None,
    };
    let mut chain = None;
    let mut basis = None;
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "match" => rule.when = matching::read(reader, value),
            "chain" => chain = Some(value),
            "priority" => rule.priority = reader.integer("priority", value),
            "last" => rule.last = reader.boolean("last", value),
            "enabled" => rule.enabled = reader.boolean("enabled", value),
            "bytes_of" => basis = chain::basis(reader, value).map(|basis| (basis, key)),
            "evidence" => rule.evidence = evidence::read(reader, value),
            _ => reader.unknown_key(key, "a rule", &KEYS),
        }
    }
    // After the walk, since `bytes_of` may stand below the chain that it is about.
    match (chain, basis) {
        (Some(chain), basis) => {
            rule.chain = chain::read(reader, chain, basis.map_or(Basis::Input, |(basis, _)| basis));
        }
        (None, Some((_, key))) => {
            let message = "`bytes_of` without a chain says nothing";
            reader.refuse_with_help(Code::Unknown, key.span(), message, "state the chain as well");
        }
        (None, None) => {}
    }
    Some(rule)
}

fn check_id(reader: &mut Reader<'_>, id: &Spanned<DeString<'_>>) {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if id.get_ref().is_empty() || !id.get_ref().chars().all(legal) {
        let message = format!("`{}` cannot name a rule", id.get_ref());
        let help = "a name has lower-case letters, digits, `-` and `_`";
        reader.refuse_with_help(Code::Unknown, id.span(), message, help);
    }
}
