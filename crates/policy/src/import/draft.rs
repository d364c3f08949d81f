//! The policy in the making: rows in the order in which they are tried, the first that matches
//! wins.

use std::ops::Range;

use crossover_core::call::Op;
use crossover_core::policy::{Basis, ByteRange};

use super::findings::Findings;
use super::ranges::{self, Counts};
use crate::bytes::range_text;

/// For which groups a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) memory: Memory,
    pub(super) world: Counts,
    pub(super) nodes: Counts,
}

/// Where the buffers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Any,
    Host,
    Device,
}

/// One line of the other system's table.
pub(super) struct Row {
    /// Where it is written.
    pub(super) span: Range<usize>,
    pub(super) op: Op,
    pub(super) groups: Groups,
    pub(super) basis: Basis,
    pub(super) bytes: ByteRange,
    /// Who serves; nobody of this policy if `None`, and no later row either.
    pub(super) target: Option<Target>,
}

/// Who serves, as a policy writes it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) backend: String,
    /// By name, with values in TOML.
    pub(super) params: Vec<(&'static str, String)>,
}

impl Target {
    pub(super) fn plain(backend: &str) -> Target {
        Target { backend: backend.to_owned(), params: Vec::new() }
    }
}

/// Rules, in the order in which they are tried.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) rules: Vec<Rule>,
    taken: Vec<Taken>,
}

/// Rows for the same groups, one behind the other.
pub(super) struct Rule {
    pub(super) op: Op,
    pub(super) groups: Groups,
    pub(super) basis: Basis,
    pub(super) chain: Vec<Candidate>,
}

pub(super) struct Candidate {
    pub(super) line: u32,
    pub(super) bytes: ByteRange,
    pub(super) target: Target,
}

/// Sizes that a row has taken from those behind it.
struct Taken {
    line: u32,
    op: Op,
    groups: Groups,
    bytes: ByteRange,
}

/// Whether a row behind one for the same sizes is worth a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlaps {
    /// A later row is weaker because it is later: whoever wrote it may not know.
    Told,
    /// A later row is weaker because its author said so.
    Meant,
}

impl Memory {
    fn covers(self, other: Memory) -> bool {
        self == Memory::Any || self == other
    }
}

impl Groups {
    pub(super) const ANY: Groups =
        Groups { memory: Memory::Any, world: Counts::ANY, nodes: Counts::ANY };

    pub(super) fn intersect(&self, other: &Groups) -> bool {
        let memory = self.memory.covers(other.memory) || other.memory.covers(self.memory);
        memory && self.world.intersect(other.world) && self.nodes.intersect(other.nodes)
    }

    fn covers(&self, other: &Groups) -> bool {
        self.memory.covers(other.memory)
            && self.world.covers(other.world)
            && self.nodes.covers(other.nodes)
    }
}

impl Draft {
    /// Puts a row behind the others. Sizes that they take from it are not written again.
    pub(super) fn push(&mut self, findings: &mut Findings<'_>, row: Row, overlaps: Overlaps) {
        if findings.is_too_much(self.taken.len(), &row.span) {
            return;
        }
        let mut parts = vec![row.bytes];
        let mut ahead = Vec::new();
        for taken in self.taken.iter().filter(|taken| taken.op == row.op) {
            if !taken.groups.intersect(&row.groups) || !ranges::intersect(taken.bytes, row.bytes) {
                continue;
            }
            if taken.groups.covers(&row.groups) {
                parts = ranges::without(&parts, taken.bytes);
                ahead.push(taken.line);
            } else if !row.groups.covers(&taken.groups) {
                ahead.push(taken.line);
            }
        }
        let line = findings.line(row.span.start);
        if let Some(message) = overlap(&ahead, &parts, row.bytes)
            && (overlaps == Overlaps::Told || parts.is_empty())
        {
            findings.note(row.span.clone(), message);
        }
        self.taken.push(Taken { line, op: row.op, groups: row.groups, bytes: row.bytes });
        let Some(target) = row.target else { return };
        if parts.is_empty() {
            return;
        }
        let candidates =
            parts.into_iter().map(|bytes| Candidate { line, bytes, target: target.clone() });
        let (op, groups, basis) = (row.op, row.groups, row.basis);
        match self.rules.iter_mut().rev().find(|rule| rule.op == op) {
            Some(rule) if rule.groups == groups && rule.basis == basis => {
                rule.chain.extend(candidates);
            }
            _ => self.rules.push(Rule { op, groups, basis, chain: candidates.collect() }),
        }
    }

    /// The priority of each rule, where it is not 0. Where no two rules for an op are for the same
    /// group, their order says nothing.
    pub(super) fn priorities(&self) -> Vec<Option<usize>> {
        let rules = &self.rules;
        let rivals = |a: &Rule| {
            let peers = rules.iter().filter(|b| b.op == a.op);
            peers.filter(|b| b.groups.intersect(&a.groups)).count() > 1
        };
        let contested: Vec<&Op> = Op::ALL
            .iter()
            .filter(|op| rules.iter().any(|rule| rule.op == **op && rivals(rule)))
            .collect();
        (0..)
            .zip(rules)
            .map(|(at, rule)| {
                let contested = contested.contains(&&rule.op);
                let behind = rules.iter().skip(at + 1).filter(|r| r.op == rule.op).count();
                (contested && behind > 0).then_some(behind)
            })
            .collect()
    }
}

/// More lines than this are not all named.
const NAMED: usize = 8;

/// What there is to say of a row behind those of some lines, of which these parts are left.
fn overlap(ahead: &[u32], parts: &[ByteRange], whole: ByteRange) -> Option<String> {
    let mut lines = ahead.to_vec();
    lines.dedup();
    let lines = match &lines[..] {
        [] => return None,
        [line] => format!("line {line}"),
        lines @ [first, .., last] if lines.len() > NAMED => {
            format!("{} lines from {first} to {last}", lines.len())
        }
        [lines @ .., last] => {
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            format!("lines {} and {last}", lines.join(", "))
        }
    };
    Some(match parts {
        [] => format!("shadowed: {lines} would serve all of it first"),
        [part] if *part == whole => {
            format!("overlaps {lines} where a group suits both, and comes after")
        }
        parts => {
            let parts: Vec<String> = parts.iter().map(|part| range_text(*part)).collect();
            format!("overlaps {lines}, and comes after: it keeps `{}`", parts.join("` and `"))
        }
    })
}
