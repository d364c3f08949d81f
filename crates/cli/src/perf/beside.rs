//! Exchanges beside the calls under test: a barrier before each, and the ranks' results after all.
//!
//! They go through a group on host memory: the one under test, or another of the same ranks where
//! their data is on devices of one node. They are made with another collective than the one under
//! test, so that the group's counters of the one under test count nothing else.
//!
//! Ranks whose devices are on several nodes have the control plane, since what moves host memory
//! between nodes may be missing there. It lets ranks go tens of microseconds apart, which is in no
//! time: calls on devices are timed behind others that put ranks in step. On host memory it would be
//! in the time of every call.

use crossover_core::bootstrap::{Bootstrap, BootstrapError};
use crossover_core::call::{Op, ReduceOp};
use crossover_core::communicator::{CallError, Communicator};
use crossover_core::form::FormError;

use crate::failure::Failure;

/// What ranks are at, for messages about one that does not come.
const BARRIER: &str = "start a call of perf together";
const RESULTS: &str = "exchange perf's results";

pub(super) enum Beside<'g> {
    ControlPlane(&'g dyn Bootstrap),
    Group {
        group: &'g Communicator,
        /// The op under test is all_reduce.
        gathers: bool,
    },
}

impl<'g> Beside<'g> {
    /// Through a group on host memory.
    pub(super) fn new(group: &'g Communicator, under_test: Op) -> Beside<'g> {
        Beside::Group { group, gathers: under_test == Op::AllReduce }
    }

    /// Returns once every rank has entered.
    pub(super) fn barrier(&self) -> Result<(), Failure> {
        match self {
            Beside::ControlPlane(boot) => boot.all_gather(BARRIER, &[]).map(drop).map_err(failure),
            Beside::Group { .. } => self.max(&mut [0]),
        }
    }

    /// The greatest of all ranks' values, for each position.
    pub(super) fn max(&self, values: &mut [u64]) -> Result<(), Failure> {
        self.reduce(values, ReduceOp::Max, |a, b| a.max(b))
    }

    /// The sum of all ranks' values.
    pub(super) fn sum(&self, value: u64) -> Result<u64, Failure> {
        let mut values = [value];
        self.reduce(&mut values, ReduceOp::Sum, u64::wrapping_add)?;
        Ok(values[0])
    }

    fn reduce(
        &self,
        values: &mut [u64],
        reduce_op: ReduceOp,
        by_hand: fn(u64, u64) -> u64,
    ) -> Result<(), Failure> {
        let all = match self {
            Beside::ControlPlane(boot) => gather(*boot, values).map_err(failure)?,
            Beside::Group { group, gathers: false } => {
                return Ok(group.all_reduce_in_place(values, reduce_op).map_err(as_ours)?);
            }
            Beside::Group { group, gathers: true } => {
                let mut all = vec![0; values.len() * group.world() as usize];
                group.all_gather(values, &mut all).map_err(as_ours)?;
                all
            }
        };
        let each = values.len();
        for (at, value) in values.iter_mut().enumerate() {
            let of_ranks = all.iter().skip(at).step_by(each).copied();
            *value = of_ranks.reduce(by_hand).unwrap_or(*value);
        }
        Ok(())
    }
}

/// All ranks' values, one rank's behind another's.
fn gather(boot: &dyn Bootstrap, values: &[u64]) -> Result<Vec<u64>, BootstrapError> {
    // Nodes need not agree on the order of bytes.
    let mine: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut all = Vec::with_capacity(values.len() * boot.world() as usize);
    for (rank, theirs) in (0..).zip(boot.all_gather(RESULTS, &mine)?) {
        if theirs.len() != mine.len() {
            let what = format!("{} bytes instead of {}", theirs.len(), mine.len());
            return Err(BootstrapError::Garbled { rank, step: RESULTS.to_owned(), what });
        }
        all.extend(theirs.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
    }
    Ok(all)
}

fn failure(error: BootstrapError) -> Failure {
    crossover::Error::from(FormError::from(error)).into()
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

#[cfg(test)]
mod tests;
