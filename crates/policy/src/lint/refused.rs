//! Calls that only the contract leaves unserved. No mistake: somebody who demands the same bits at
//! every size may well have no backend for every topology; but they should know.

use std::collections::BTreeMap;

use crossover_core::call::{Dtype, Dtypes, Op};
use crossover_core::facts::{Topologies, Topology};

use super::View;
use super::case::Case;
use crate::domain::{CallClass, GroupClass, LOOSEST, decide, points};

/// Is there a size that is served under some contract, and under none within that of the files?
pub(super) fn by_contract(view: &View<'_>, case: &Case<'_>) -> bool {
    if view.contract == LOOSEST {
        return false;
    }
    let admitted = case.under(view.book, view.contract);
    let mut sizes = points(&case.reach, case.element()).into_iter();
    sizes.any(|size| decide(&case.reach, size).is_some() && decide(&admitted, size).is_none())
}

/// By topology and op: what is refused.
#[derive(Default)]
pub(super) struct Refused(BTreeMap<Topology, BTreeMap<Op, Share>>);

/// Of the calls of one op on one topology.
#[derive(Default)]
struct Share {
    calls: u64,
    refused: u64,
    /// The element types of those that are refused.
    dtypes: Dtypes,
}

impl Refused {
    /// Notes that these calls are refused, or that they are not.
    pub(super) fn add(&mut self, groups: &GroupClass, calls: &CallClass, is_refused: bool) {
        for group in &groups.members {
            let ops = self.0.entry(group.topology).or_default();
            let share = ops.entry(calls.kind.op).or_default();
            share.calls += calls.members.len() as u64;
            if is_refused {
                share.refused += calls.members.len() as u64;
                let dtypes = calls.members.iter().map(|call| call.dtype);
                share.dtypes = share.dtypes.union(dtypes.collect());
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
        if self.dtypes != Dtypes::ALL {
            let names: Vec<&str> = self.dtypes.iter().map(Dtype::name).collect();
            return format!("{op} of {}", names.join("/"));
        }
        match self.refused == self.calls {
            true => op.to_string(),
            false => format!("{op} in part"),
        }
    }
}
