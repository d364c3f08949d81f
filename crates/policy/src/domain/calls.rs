//! Kinds of calls that no policy tells apart, as one.

use std::collections::HashMap;

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};

use super::book::{Book, LOOSEST};

/// Kinds of calls that are alike in every decision.
pub(crate) struct CallClass {
    /// The first of them. The contract is the loosest.
    pub(crate) kind: CallKind,
    /// All of them.
    pub(crate) members: Vec<CallKind>,
    /// By book and rule: does it match them?
    pub(crate) rules: Vec<Vec<bool>>,
}

pub(super) fn classes(books: &[&Book<'_>]) -> Vec<CallClass> {
    let mut classes: Vec<CallClass> = Vec::new();
    let mut by_vector = HashMap::new();
    for kind in every_kind() {
        let rules: Vec<Vec<bool>> = books.iter().map(|b| b.rules_for_call(&kind)).collect();
        let takes: Vec<bool> = books
            .iter()
            .flat_map(|b| &b.known)
            .map(|k| k.algorithm.eligibility.failing_call(&kind).is_none())
            .collect();
        // The mode counts for groups that cannot record; the rest for what the sizes are.
        let vector = (rules.clone(), takes, kind.op, kind.dtype.size(), kind.mode);
        match by_vector.get(&vector) {
            Some(&at) => {
                let class: &mut CallClass = &mut classes[at];
                class.members.push(kind);
            }
            None => {
                by_vector.insert(vector, classes.len());
                classes.push(CallClass { kind, members: vec![kind], rules });
            }
        }
    }
    classes
}

/// The types that engines use most stand first: messages name the first kind that shows something.
fn every_kind() -> impl Iterator<Item = CallKind> {
    let usual = [Dtype::Bf16, Dtype::F16, Dtype::F32];
    let others = Dtype::ALL.iter().copied().filter(move |dtype| !usual.contains(dtype));
    let dtypes: Vec<Dtype> = usual.into_iter().chain(others).collect();
    Op::ALL.iter().flat_map(move |&op| {
        let reduce_ops = if op.reduces() { ReduceOp::ALL } else { &[ReduceOp::Sum] };
        let dtypes = dtypes.clone();
        reduce_ops.iter().flat_map(move |&reduce_op| {
            dtypes.clone().into_iter().flat_map(move |dtype| {
                let kind = move |&mode| CallKind { op, dtype, reduce_op, mode, contract: LOOSEST };
                Mode::ALL.iter().map(kind)
            })
        })
    })
}
