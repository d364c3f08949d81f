//! The policy in force, printed: every rule in the order in which it is tried, and for every value
//! the layer, file and line that state it.

use std::fmt::Write as _;

use crossover_core::policy::{Basis, Candidate, Match, Rule};
use serde_json::{Value, json};

use crate::bytes::range_text;
use crate::effective::Effective;
use crate::provenance::Statement;

/// For a person. Ends in a line break.
pub fn text(effective: &Effective) -> String {
    let mut out = String::new();
    write_text(&mut out, effective).expect("a string takes all that is written to it");
    out
}

/// For a program.
pub fn record(effective: &Effective) -> Value {
    let rules: Vec<Value> =
        effective.policy.rules().iter().map(|r| rule_record(effective, r)).collect();
    let off: Vec<Value> =
        effective.disabled_rules().iter().map(|r| rule_record(effective, r)).collect();
    let contract = effective.policy.contract;
    json!({
        "digest": format!("{:#}", effective.policy.digest()),
        "contract": {
            "determinism": contract.determinism,
            "accept": contract.accept.iter().collect::<Vec<_>>(),
            "stated": effective.contract_statements().iter().map(statement).collect::<Vec<_>>(),
        },
        "rules": rules,
        "disabled_rules": off,
        "disabled": effective.disabled.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn write_text(out: &mut String, effective: &Effective) -> std::fmt::Result {
    writeln!(out, "policy {}", effective.policy.digest())?;
    let contract = effective.policy.contract;
    let stated = effective.contract_statements();
    let values = [
        ("determinism", contract.determinism.to_string()),
        ("accept", contract.accept.to_string()),
    ];
    for (field, value) in values {
        match stated.iter().find(|s| s.field == field) {
            Some(statement) => writeln!(out, "  {field:11} {value}  {}", place(statement))?,
            None => writeln!(out, "  {field:11} left to the engine")?,
        }
    }
    for rule in effective.policy.rules() {
        writeln!(out)?;
        write_rule(out, effective, rule, true)?;
    }
    for rule in effective.disabled_rules() {
        writeln!(out)?;
        write_rule(out, effective, rule, false)?;
    }
    if !effective.disabled.is_empty() {
        let targets: Vec<String> = effective.disabled.iter().map(ToString::to_string).collect();
        writeln!(out, "\ndisabled: {}", targets.join(", "))?;
    }
    Ok(())
}

fn write_rule(
    out: &mut String,
    effective: &Effective,
    rule: &Rule,
    is_on: bool,
) -> std::fmt::Result {
    let off = if is_on { "" } else { "disabled " };
    writeln!(out, "{off}rule {} [{}] {}", rule.id, rule.layer, rule.origin)?;
    let statements = effective.statements(&rule.id);
    let stated = |field: &str| statements.iter().find(|s| s.field == field);
    let mut line = |field: &str, value: &str| match stated(field) {
        // What the rule's own statement says needs no second place.
        Some(s) if s.origin.file != rule.origin.file || s.layer != rule.layer => {
            writeln!(out, "  {field:8} {value}  {}", place(s))
        }
        _ => writeln!(out, "  {field:8} {value}"),
    };
    line("match", &match_words(&rule.when))?;
    if rule.chain.is_empty() {
        line("chain", "none: all that it names is disabled")?;
    }
    for (at, candidate) in rule.chain.iter().enumerate() {
        line(if at == 0 { "chain" } else { "" }, &candidate_words(candidate))?;
    }
    if rule.priority != 0 || stated("priority").is_some() {
        line("priority", &rule.priority.to_string())?;
    }
    if rule.last || stated("last").is_some() {
        line("last", &rule.last.to_string())?;
    }
    if stated("enabled").is_some() {
        line("enabled", &is_on.to_string())?;
    }
    if let Some(evidence) = &rule.evidence {
        line("evidence", &evidence.to_string())?;
    }
    Ok(())
}

fn place(statement: &Statement) -> String {
    format!("# [{}] {}", statement.layer, statement.origin)
}

/// `op all_gather, group tp, topology nvlink_full | mnnvl`; `all` for no key.
pub(crate) fn match_words(when: &Match) -> String {
    let keys = match_values(when);
    let words: Vec<String> =
        keys.iter().map(|(key, values)| format!("{key} {}", values.join(" | "))).collect();
    if words.is_empty() { "all".to_owned() } else { words.join(", ") }
}

/// The constrained keys and their values, as a file would have them.
fn match_values(when: &Match) -> Vec<(&'static str, Vec<String>)> {
    fn names<W: ToString>(words: impl Iterator<Item = W>) -> Vec<String> {
        words.map(|word| word.to_string()).collect()
    }
    let counts = |ranges: &Vec<(u32, u32)>| ranges.iter().map(count_text).collect::<Vec<_>>();
    let keys = [
        ("op", when.op.map(|set| names(set.iter()))),
        ("arch", when.arch.clone()),
        ("device", when.device.clone()),
        ("world", when.world.as_ref().map(counts)),
        ("nodes", when.nodes.as_ref().map(counts)),
        ("topology", when.topology.map(|set| names(set.iter()))),
        ("group", when.group.clone()),
        ("caps", when.caps.map(|set| names(set.iter()))),
        ("dtype", when.dtype.map(|set| names(set.iter()))),
        ("reduce_op", when.reduce_op.map(|set| names(set.iter()))),
        ("mode", when.mode.map(|set| names(set.iter()))),
    ];
    keys.into_iter().filter_map(|(key, values)| Some((key, values?))).collect()
}

fn count_text((low, high): &(u32, u32)) -> String {
    match (*low, *high) {
        (low, high) if low == high => low.to_string(),
        (low, u32::MAX) => format!("{low}.."),
        (1, high) => format!("..={high}"),
        (low, high) => format!("{low}..={high}"),
    }
}

fn candidate_words(candidate: &Candidate) -> String {
    let of_output = if candidate.basis == Basis::Output { " of output" } else { "" };
    let mut words = format!("{}  {}{of_output}", candidate.target(), range_text(candidate.bytes));
    if !candidate.params.is_empty() {
        let params: Vec<String> =
            candidate.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
        words += &format!("  {}", params.join(", "));
    }
    words
}

fn rule_record(effective: &Effective, rule: &Rule) -> Value {
    let when: serde_json::Map<String, Value> =
        match_values(&rule.when).into_iter().map(|(key, v)| (key.to_owned(), v.into())).collect();
    let chain: Vec<Value> = rule
        .chain
        .iter()
        .map(|c| {
            let params: serde_json::Map<String, Value> =
                c.params.iter().map(|(name, v)| (name.clone(), v.to_string().into())).collect();
            json!({
                "use": c.target(),
                "bytes": range_text(c.bytes),
                "bytes_of": c.basis,
                "optional": c.optional,
                "params": params,
            })
        })
        .collect();
    json!({
        "id": rule.id,
        "layer": rule.layer,
        "file": rule.origin.file,
        "line": rule.origin.line,
        "match": when,
        "chain": chain,
        "priority": rule.priority,
        "last": rule.last,
        "evidence": rule.evidence.as_ref().map(ToString::to_string),
        "stated": effective.statements(&rule.id).iter().map(statement).collect::<Vec<_>>(),
    })
}

fn statement(statement: &Statement) -> Value {
    json!({
        "field": statement.field,
        "layer": statement.layer,
        "file": statement.origin.file,
        "line": statement.origin.line,
    })
}
