//! Exchanges beside the calls under test, through the same group on host memory, or through another
//! one of the same ranks where their data is on devices: a barrier before each, and the ranks'
//! results after all.
//!
//! They are made with another collective than the one under test, so that the group's counters of
//! the one under test count nothing else.

use crossover_core::call::{Op, ReduceOp};
use crossover_core::communicator::{CallError, Communicator};

pub(super) struct Beside<'g> {
    group: &'g Communicator,
    /// The op under test is all_reduce.
    gathers: bool,
}

impl<'g> Beside<'g> {
    pub(super) fn new(group: &'g Communicator, under_test: Op) -> Beside<'g> {
        Beside { group, gathers: under_test == Op::AllReduce }
    }

    /// Returns once every rank has entered.
    pub(super) fn barrier(&self) -> Result<(), CallError> {
        self.max(&mut [0])
    }

    /// The greatest of all ranks' values, for each position.
    pub(super) fn max(&self, values: &mut [u64]) -> Result<(), CallError> {
        self.reduce(values, ReduceOp::Max, |a, b| a.max(b))
    }

    /// The sum of all ranks' values.
    pub(super) fn sum(&self, value: u64) -> Result<u64, CallError> {
        let mut values = [value];
        self.reduce(&mut values, ReduceOp::Sum, u64::wrapping_add)?;
        Ok(values[0])
    }

    fn reduce(
        &self,
        values: &mut [u64],
        reduce_op: ReduceOp,
        by_hand: fn(u64, u64) -> u64,
    ) -> Result<(), CallError> {
        if !self.gathers {
            return self.group.all_reduce_in_place(values, reduce_op).map_err(as_ours);
        }
        let mut all = vec![0; values.len() * self.group.world() as usize];
        self.group.all_gather(values, &mut all).map_err(as_ours)?;
        for (at, value) in values.iter_mut().enumerate() {
            *value = all
                .iter()
                .skip(at)
                .step_by(all.len() / self.group.world() as usize)
                .copied()
                .reduce(by_hand)
                .unwrap_or(*value);
        }
        Ok(())
    }
}

/// A policy may leave another op unserved than the one under test: whose call failed must be told.
fn as_ours(error: CallError) -> CallError {
    match error {
        CallError::NothingEligible { call, why } => {
            let call = format!("{call}, by which perf exchanges its own results");
            CallError::NothingEligible { call, why }
        }
        other => other,
    }
}
