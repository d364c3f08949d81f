//! A policy to tables: for each kind of call, who serves which sizes.

use std::collections::HashMap;

use crate::call::{CallKind, Op};
use crate::plan::kinds::{NUMBERS, every_kind_of_call, number_of, numbers_of};
use crate::plan::paint::{Run, paint};
use crate::plan::table::{Pick, Table};
use crate::plan::{Plan, Step};
use crate::policy::Basis;

/// The tables of the plan's contract.
#[derive(Default)]
pub(super) struct Tables {
    tables: Vec<Table>,
    /// By number of the kind of call.
    of_kind: Vec<u16>,
}

impl Tables {
    /// The table of a kind of call.
    pub(super) fn of(&self, call: &CallKind) -> &Table {
        &self.tables[usize::from(self.of_kind[number_of(call)])]
    }
}

/// All that decides on a kind of call, but the size. Kinds for which it is equal, such as those of
/// most dtypes, share a table.
#[derive(PartialEq, Eq, Hash)]
struct Likeness {
    /// The rules that are tried.
    rules: Vec<u32>,
    /// By algorithm of each offer: does it take the kind at all?
    taken: Vec<bool>,
    /// How output bytes follow from input bytes; no matter where every range is about the input.
    op: Option<Op>,
}

impl Plan {
    pub(super) fn compile_tables(&self) -> Tables {
        let mut tables = Tables { tables: Vec::new(), of_kind: vec![0; NUMBERS] };
        let mut known = HashMap::new();
        let output = self.steps.iter().any(|step| step.basis == Basis::Output);
        for call in every_kind_of_call(self.contract) {
            let likeness = Likeness {
                rules: self.matching(&call).collect(),
                taken: self.taken(&call),
                op: output.then_some(call.op),
            };
            let table = *known.entry(likeness).or_insert_with(|| {
                tables.tables.push(self.table(&call));
                tables.tables.len() as u16 - 1
            });
            numbers_of(&call).for_each(|number| tables.of_kind[number] = table);
        }
        tables
    }

    /// The table of one kind of call, whatever its contract.
    pub(super) fn table(&self, call: &CallKind) -> Table {
        let runs: Vec<Run> =
            self.reached(call).filter_map(|(at, step)| self.run(at, step, call)).collect();
        paint(&runs)
    }

    /// Which sizes a candidate serves. [`Plan::judge`] is asked once, at the least size of the
    /// range, and that is enough: of all that it looks at, only the range and the capacity depend
    /// on the size, both hold from there on until one ends, and neither begins again.
    fn run(&self, at: u32, step: &Step, call: &CallKind) -> Option<Run> {
        let bytes = step.input_bytes(call.op, self.group.world);
        let multiple_of = self.judge(step, call, bytes.low).ok()?;
        let full = self.capacity(step)?.checked_add(1);
        let pick = Pick {
            candidate: at,
            offer: step.offer?,
            algorithm: step.algorithm,
            zeros: multiple_of.trailing_zeros() as u8,
        };
        let high = [bytes.high, full].into_iter().flatten().min();
        Some(Run { low: bytes.low, high, pick })
    }

    fn taken(&self, call: &CallKind) -> Vec<bool> {
        let algorithms = (0..).zip(&self.offers).flat_map(|(at, offer)| {
            (0..offer.descriptor.algorithms.len()).map(move |algorithm| (at, algorithm as u16))
        });
        // Every capacity has room for no bytes.
        algorithms.map(|(offer, algorithm)| self.takes(offer, algorithm, call, 0).is_ok()).collect()
    }
}
