//! A draft as the text of a policy file.

use std::collections::HashSet;
use std::fmt::Write;

use crossover_core::facts::HOST_ARCH;
use crossover_core::policy::{Basis, ByteRange};

use super::Format;
use super::draft::{Candidate, Draft, Memory, Rule};
use super::ranges::Counts;
use crate::bytes::range_text;
use crate::diagnostic::Diagnostic;

/// Writes it, with the losses and the notes in short at the top.
pub(super) fn text(
    format: Format,
    name: &str,
    draft: Draft,
    losses: &[Diagnostic],
    notes: &[Diagnostic],
) -> String {
    let mut out = format!("# Imported from {} ({format}).\n", comment(name));
    head(&mut out, "Lost: what it does not do, or does otherwise", losses);
    head(&mut out, "Nothing is lost by how this was read", notes);
    out += "\nschema = 1\n";
    let priorities = draft.priorities();
    let mut ids: HashSet<String> = HashSet::new();
    for (drafted, priority) in draft.rules.iter().zip(priorities) {
        let id = new_id(format, drafted, &ids);
        rule(&mut out, &id, drafted, priority);
        let from = quoted(&format!("{format}: {name}"));
        let _ = writeln!(out, "evidence = {{ kind = \"ported\", from = {from} }}");
        ids.insert(id);
    }
    out
}

fn head(out: &mut String, heading: &str, told: &[Diagnostic]) {
    if !told.is_empty() {
        // Writing to a string does not fail.
        let _ = writeln!(out, "#\n# {heading}:");
    }
    for told in told {
        let _ = writeln!(out, "# - line {}: {}", told.line, comment(&told.message));
    }
}

/// The format and the line of the first row; a number where a line gave several rules.
fn new_id(format: Format, rule: &Rule, taken: &HashSet<String>) -> String {
    let line = rule.chain.first().map_or(0, |candidate| candidate.line);
    let plain = format!("{}-{line}", format.prefix());
    let mut id = plain.clone();
    let mut number = 2;
    while taken.contains(&id) {
        id = format!("{plain}-{number}");
        number += 1;
    }
    id
}

fn rule(out: &mut String, id: &str, rule: &Rule, priority: Option<usize>) {
    let mut when = vec![format!("op = \"{}\"", rule.op)];
    // No backend of devices serves the host, so that theirs need no word.
    if rule.groups.memory == Memory::Host {
        when.push(format!("arch = \"{HOST_ARCH}\""));
    }
    when.extend(counts("world", rule.groups.world));
    when.extend(counts("nodes", rule.groups.nodes));
    let _ = writeln!(out, "\n[rule.{id}]\nmatch = {{ {} }}", when.join(", "));
    if rule.basis == Basis::Output {
        *out += "bytes_of = \"output\"\n";
    }
    if let Some(priority) = priority {
        let _ = writeln!(out, "priority = {priority}");
    }
    *out += "chain = [\n";
    for candidate in &rule.chain {
        let _ = writeln!(out, "  {}, # line {}", item(candidate), candidate.line);
    }
    *out += "]\n";
}

fn item(candidate: &Candidate) -> String {
    let mut keys = vec![format!("use = \"{}\"", candidate.target.backend)];
    if candidate.bytes != ByteRange::ANY {
        keys.push(format!("bytes = \"{}\"", range_text(candidate.bytes)));
    }
    let params = &candidate.target.params;
    if !params.is_empty() {
        let params: Vec<String> =
            params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        keys.push(format!("params = {{ {} }}", params.join(", ")));
    }
    format!("{{ {} }}", keys.join(", "))
}

/// A key of `match`, unless it would match all.
fn counts(key: &str, counts: Counts) -> Option<String> {
    let Counts { low, high } = counts;
    match (low, high) {
        _ if counts == Counts::ANY => None,
        _ if low == high => Some(format!("{key} = {low}")),
        (low, u32::MAX) => Some(format!("{key} = \"{low}..\"")),
        (1, high) => Some(format!("{key} = \"..={high}\"")),
        (low, high) => Some(format!("{key} = \"{low}..={high}\"")),
    }
}

/// A TOML string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

/// Text that stays in its comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
