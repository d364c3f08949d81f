//! A decision, told: [`text`] to a person, [`Record`] to a program. Both print what the core says
//! ([`Explanation`]); neither decides anything.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crossover_core::call::{Dtype, Op};
use crossover_core::explain::{Considered, Explanation, Next, Verdict};
use crossover_core::facts::GroupProfile;
use crossover_core::policy::{Basis, ByteRange, Layer};
use serde::Serialize;

use crate::bytes::{range_text, size_text};

/// The decision for a person: the answer first, then all that was considered for it, in the order
/// in which it is tried. Ends in a line break.
pub fn text(group: &GroupProfile, explanation: &Explanation) -> String {
    let mut out = String::new();
    write_text(&mut out, group, explanation).expect("a string takes all that is written to it");
    out
}

fn write_text(out: &mut String, group: &GroupProfile, e: &Explanation) -> std::fmt::Result {
    let reduce_op = if e.call.op.reduces() { e.call.reduce_op.name() } else { "" };
    let words = [e.call.op.name(), e.call.dtype.name(), reduce_op, e.call.mode.name()];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    writeln!(out, "{} {} per rank", words.join(" "), exactly(e.bytes))?;
    let GroupProfile { arch, world, nodes, topology, tag, caps, .. } = group;
    let s = if *nodes == 1 { "" } else { "s" };
    writeln!(
        out,
        "  group {tag}: {arch} x{world} on {nodes} node{s}, topology {topology}, caps {caps}"
    )?;
    match &e.chosen {
        None => writeln!(out, "  -> nothing serves this call")?,
        Some(chosen) if chosen.rule.is_empty() => writeln!(out, "  -> {}", chosen.target)?,
        Some(c) => {
            writeln!(out, "  -> {} by rule {} [{}] {}", c.target, c.rule, c.layer, c.origin)?;
            if let Some(evidence) = &c.evidence {
                writeln!(out, "     evidence: {evidence}")?;
            }
            if !c.params.is_empty() {
                let words: Vec<_> = c.params.iter().map(|(k, v)| format!("{k} {v}")).collect();
                writeln!(out, "     params: {}", words.join(", "))?;
            }
        }
    }
    writeln!(out, "     holds for {}", holds(e))?;
    for told in e.considered.chunk_by(told_together) {
        write_rule(out, told)?;
    }
    Ok(())
}

/// Candidates of one rule stand together; so do rows of one table that do not match for one reason.
fn told_together(a: &Considered, b: &Considered) -> bool {
    let fold = |c: &Considered| (c.verdict == Verdict::NoMatch).then(|| c.reason.clone());
    let rows = table(&a.rule).is_some() && table(&a.rule) == table(&b.rule);
    a.rule == b.rule || (rows && fold(a).is_some() && fold(a) == fold(b))
}

/// The table that a rule is a row of.
fn table(rule: &str) -> Option<&str> {
    rule.split_once('@').map(|(table, _)| table)
}

fn write_rule(out: &mut String, candidates: &[Considered]) -> std::fmt::Result {
    let Some(first) = candidates.first() else { return Ok(()) };
    let rows = candidates.chunk_by(|a, b| a.rule == b.rule).count();
    if let Some(table) = table(&first.rule).filter(|_| rows > 1) {
        write!(out, "  table {table} [{}] {}: {rows} rows: ", first.layer, first.origin)?;
        return writeln!(out, "no match: {}", first.reason);
    }
    write!(out, "  rule {} [{}] {}", first.rule, first.layer, first.origin)?;
    if first.verdict == Verdict::NoMatch {
        return writeln!(out, ": no match: {}", first.reason);
    }
    writeln!(out)?;
    let ranges: Vec<String> = candidates.iter().map(range).collect();
    let target_width = candidates.iter().map(|c| c.target.len()).max().unwrap_or(0);
    let range_width = ranges.iter().map(String::len).max().unwrap_or(0);
    for (c, range) in candidates.iter().zip(&ranges) {
        let mark = if c.verdict == Verdict::Chosen { '>' } else { ' ' };
        let verdict = c.verdict.name().replace('_', " ");
        write!(out, "   {mark} {:target_width$}  {range:range_width$}  {verdict}", c.target)?;
        let colon = if c.reason.is_empty() { "" } else { ": " };
        writeln!(out, "{colon}{}", c.reason)?;
    }
    Ok(())
}

fn range(candidate: &Considered) -> String {
    let of_output = if candidate.basis == Basis::Output { " of output" } else { "" };
    range_text(candidate.range) + of_output
}

fn holds(e: &Explanation) -> String {
    let (low, last) = e.holds;
    let range = range_text(ByteRange { low, high: last.and_then(|last| last.checked_add(1)) });
    match &e.next {
        None => range,
        Some(Next { at, target: Some(target), params }) => {
            let words: Vec<_> = params.iter().map(|(k, v)| format!("{k} {v}")).collect();
            let params =
                if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
            format!("{range}; from {} on {target}{params}", exactly(*at))
        }
        Some(Next { at, target: None, .. }) => {
            format!("{range}; from {} on nothing serves", exactly(*at))
        }
    }
}

/// `64KiB (65536 B)`, or `65552 B` where no greater unit divides it.
fn exactly(bytes: u64) -> String {
    let text = size_text(bytes);
    let in_bytes = format!("{bytes} B");
    if text.ends_with("iB") { format!("{text} ({in_bytes})") } else { in_bytes }
}

/// The decision as `crossover explain --json` prints it: one of these for each size, in an array.
#[derive(Debug, Serialize)]
pub struct Record<'e> {
    op: Op,
    dtype: Dtype,
    bytes: u64,
    chosen: Option<ChosenRecord<'e>>,
    considered: Vec<ConsideredRecord<'e>>,
    holds: HoldsRecord,
    next: Option<NextRecord<'e>>,
}

#[derive(Debug, Serialize)]
struct ChosenRecord<'e> {
    #[serde(rename = "use")]
    target: &'e str,
    rule: &'e str,
    layer: Layer,
    file: &'e str,
    line: u32,
    evidence: Option<String>,
    params: BTreeMap<&'e str, &'e str>,
}

#[derive(Debug, Serialize)]
struct ConsideredRecord<'e> {
    #[serde(rename = "use")]
    target: &'e str,
    rule: &'e str,
    verdict: Verdict,
    reason: &'e str,
}

/// First and last size, both inside; no last one if `null`.
#[derive(Debug, Serialize)]
struct HoldsRecord {
    from: u64,
    to: Option<u64>,
}

#[derive(Debug, Serialize)]
struct NextRecord<'e> {
    at: u64,
    #[serde(rename = "use")]
    target: Option<&'e str>,
    params: BTreeMap<&'e str, &'e str>,
}

fn by_name<'e>(params: &'e [(&'static str, String)]) -> BTreeMap<&'e str, &'e str> {
    params.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

impl<'e> From<&'e Explanation> for Record<'e> {
    fn from(e: &'e Explanation) -> Self {
        Record {
            op: e.call.op,
            dtype: e.call.dtype,
            bytes: e.bytes,
            chosen: e.chosen.as_ref().map(|c| ChosenRecord {
                target: &c.target,
                rule: &c.rule,
                layer: c.layer,
                file: &c.origin.file,
                line: c.origin.line,
                evidence: c.evidence.as_ref().map(ToString::to_string),
                params: by_name(&c.params),
            }),
            considered: e
                .considered
                .iter()
                .map(|c| ConsideredRecord {
                    target: &c.target,
                    rule: &c.rule,
                    verdict: c.verdict,
                    reason: &c.reason,
                })
                .collect(),
            holds: HoldsRecord { from: e.holds.0, to: e.holds.1 },
            next: e.next.as_ref().map(|n| NextRecord {
                at: n.at,
                target: n.target.as_deref(),
                params: by_name(&n.params),
            }),
        }
    }
}
