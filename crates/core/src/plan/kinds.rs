//! The kinds of call, numbered.

use crate::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crate::contract::Contract;

/// How many numbers [`number_of`] gives out.
pub(super) const NUMBERS: usize =
    Op::ALL.len() * Dtype::ALL.len() * Mode::ALL.len() * ReduceOp::ALL.len();

/// Every kind of call under a contract. An op that only copies has one for each dtype and mode,
/// whatever its reduce op.
pub(crate) fn every_kind_of_call(contract: Contract) -> impl Iterator<Item = CallKind> {
    Op::ALL.iter().flat_map(move |&op| {
        Dtype::ALL.iter().flat_map(move |&dtype| {
            Mode::ALL.iter().flat_map(move |&mode| {
                let reduce_ops = if op.reduces() { ReduceOp::ALL } else { &[ReduceOp::Sum] };
                reduce_ops.iter().map(move |&reduce_op| CallKind {
                    op,
                    dtype,
                    reduce_op,
                    mode,
                    contract,
                })
            })
        })
    })
}

/// The numbers of a kind of call: an op that only copies has one for each reduce op, so that a
/// decision need not ask which op it is.
pub(super) fn numbers_of(call: &CallKind) -> impl Iterator<Item = usize> {
    let one = std::slice::from_ref(&call.reduce_op);
    let reduce_ops = if call.op.reduces() { one } else { ReduceOp::ALL };
    reduce_ops.iter().map(|&reduce_op| number_of(&CallKind { reduce_op, ..*call }))
}

/// The number of a call's kind; its contract has no part in it.
pub(super) fn number_of(call: &CallKind) -> usize {
    let kind = call.op as usize * Dtype::ALL.len() + call.dtype as usize;
    let kind = kind * Mode::ALL.len() + call.mode as usize;
    kind * ReduceOp::ALL.len() + call.reduce_op as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_belongs_to_one_kind() {
        let kinds = every_kind_of_call(Contract::DEFAULT);
        let mut numbers: Vec<usize> =
            kinds.flat_map(|k| numbers_of(&k).collect::<Vec<_>>()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..NUMBERS).collect::<Vec<_>>());
    }
}
