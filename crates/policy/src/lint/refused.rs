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

/// By topology and op: the element types.
#[derive(Default)]
pub(super) struct Refused(BTreeMap<Topology, BTreeMap<Op, Dtypes>>);

impl Refused {
    pub(super) fn add(&mut self, groups: &GroupClass, calls: &CallClass) {
        for group in &groups.members {
            let ops = self.0.entry(group.topology).or_default();
            for call in &calls.members {
                let dtypes = ops.entry(call.op).or_default();
                *dtypes = dtypes.union(Dtypes::of(&[call.dtype]));
            }
        }
    }

    /// Topologies of which the same is refused stand together.
    pub(super) fn in_words(&self) -> Vec<String> {
        let mut lines: Vec<(String, Topologies)> = Vec::new();
        for (topology, ops) in &self.0 {
            let words: Vec<String> = ops.iter().map(|(op, dtypes)| of_op(*op, *dtypes)).collect();
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

/// The op; with the types, if not all are refused.
fn of_op(op: Op, dtypes: Dtypes) -> String {
    if Dtype::ALL.iter().all(|dtype| dtypes.contains(*dtype)) {
        return op.to_string();
    }
    let names: Vec<&str> = dtypes.iter().map(Dtype::name).collect();
    format!("{op} of {}", names.join("/"))
}
