//! Calls that only the contract leaves unserved. No mistake: somebody who demands the same bits at
//! every size may well have no backend for every topology; but they should know.

use std::collections::BTreeMap;

use crossover_core::call::{Dtype, Dtypes, Op};
use crossover_core::facts::{Topologies, Topology};

use super::View;
use super::case::{Case, admitted};
use super::words::{call_words, contract_words, group_words, target_of_rule};
use crate::bytes::size_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::domain::{CallClass, GroupClass, Reach, decide, decisions, sweep};

/// The first size that is served under some contract, and not under that of the files and the
/// engine; that of an engine that states nothing, if it is not known.
pub(super) fn by_contract(view: &View<'_>, case: &Case<'_>) -> Option<u64> {
    let admitted = case.under(view.book, view.usual);
    // What is admitted lies within the reach, and so do its bounds.
    let sizes = decisions(&case.reach, case.element());
    let served: Vec<u64> = sizes.iter().filter(|(_, at)| at.is_some()).map(|(s, _)| *s).collect();
    first_unserved(&admitted, &served)
}

/// W017: such a size, where a rule that is marked last keeps from it what would serve it.
pub(super) fn by_closing(view: &View<'_>, case: &Case<'_>, size: u64) -> Option<Diagnostic> {
    let closing = &view.book.rules[*case.reached.last()?];
    if !closing.last || !view.tells(closing) {
        return None;
    }
    let beyond = admitted(view.book, case.group, &case.call, &case.unclosed, view.usual);
    let would = &beyond[decide(&beyond, size)?];
    let message = format!(
        "{} of {} on {} is refused: the {}contract, {}, excludes all that this rule leaves, and no \
         rule after it is tried; {} would serve",
        call_words(&case.call),
        size_text(size),
        group_words(case.group),
        if view.is_stated { "" } else { "usual " },
        contract_words(view.usual),
        target_of_rule(&view.book.target(would.algorithm), &view.book.rules[would.rule]),
    );
    let help = "take `last` away, or end the chain in a backend that meets the contract";
    let help = Some(help.to_owned());
    Some(view.effective.finding(Code::RefusedByContract, closing, None, message, help))
}

fn first_unserved(reach: &[Reach], sizes: &[u64]) -> Option<u64> {
    let mut unserved = None;
    sweep(reach, sizes, |size, covering| {
        let served = covering.iter().any(|at| size.is_multiple_of(reach[*at].multiple_of));
        if !served && unserved.is_none() {
            unserved = Some(size);
        }
    });
    unserved
}

/// By topology and op: what is refused.
#[derive(Default)]
pub(super) struct Refused(BTreeMap<Topology, BTreeMap<Op, Share>>);

/// Of the calls of one op on one topology.
#[derive(Default)]
struct Share {
    calls: u64,
    refused: u64,
    /// Their element types.
    all: Dtypes,
    /// The element types of those that are refused.
    dtypes: Dtypes,
}

impl Refused {
    /// Notes that these calls, which some contract lets be served, are refused, or that they are not.
    pub(super) fn add(&mut self, groups: &GroupClass, calls: &CallClass, is_refused: bool) {
        for group in &groups.members {
            let ops = self.0.entry(group.topology).or_default();
            let share = ops.entry(calls.kind.op).or_default();
            let dtypes: Dtypes = calls.members.iter().map(|call| call.dtype).collect();
            share.calls += calls.members.len() as u64;
            share.all = share.all.union(dtypes);
            if is_refused {
                share.refused += calls.members.len() as u64;
                share.dtypes = share.dtypes.union(dtypes);
            }
        }
    }

    /// Topologies of which the same is refused stand together.
    pub(super) fn in_words(&self) -> Vec<String> {
        let mut lines: Vec<(String, Topologies)> = Vec::new();
        for (topology, ops) in &self.0 {
            let refused = ops.iter().filter(|(_, share)| share.refused > 0);
            let words: Vec<String> = refused.map(|(op, share)| share.of_op(*op)).collect();
            if words.is_empty() {
                continue;
            }
            let words = words.join(", ");
            let topology = Topologies::of(&[*topology]);
            match lines.iter_mut().find(|(other, _)| *other == words) {
                Some((_, topologies)) => *topologies = topologies.union(topology),
                None => lines.push((words, topology)),
            }
        }
        lines.into_iter().map(|(words, on)| format!("{words} on {on}")).collect()
    }
}

impl Share {
    /// The op; with the types, if not all are refused; and with a word if other groups or calls
    /// of the op are served.
    fn of_op(&self, op: Op) -> String {
        if self.dtypes != self.all {
            let names: Vec<&str> = self.dtypes.iter().map(Dtype::name).collect();
            return format!("{op} of {}", names.join("/"));
        }
        match self.refused == self.calls {
            true => op.to_string(),
            false => format!("{op} in part"),
        }
    }
}
