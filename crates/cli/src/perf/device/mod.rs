//! Calls on a device: one size, of one or several groups in turn.
//!
//! Read [`slot`] (the buffers), then [`trial`] (one group's calls: right? how long?); [`mod@floor`] is what nothing
//! can be faster than.

mod floor;
mod slot;
mod trial;

use std::path::Path;
use std::time::{Duration, Instant};

use crossover_core::communicator::{CommitError, Communicator};
use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::stream::{Event, Stream};

use super::beside::Beside;
use super::case::Case;
use super::floors::Floors;
use super::measure::{Measured, Placed, SMALL, affordable, calls_by_target, measured};
use super::slot::Placement;
use crate::failure::Failure;
use slot::{Memory, Slots};
use trial::Trial;

/// Calls with memory of their own, up to [`SMALL`] and beyond it: an odd number, so that whatever
/// alternates between calls starts each replay the other way round.
const SLOTS: usize = 5;
const LARGE_SLOTS: usize = 3;
/// Checks of all outputs before times are taken, likewise; one more follows.
const PROOFS: u32 = 3;
const LARGE_PROOFS: u32 = 1;
/// Each group is measured so many times in turn with the others: what disturbs the machine for a
/// while then disturbs all.
const ROUNDS: usize = 5;
/// Samples before those that count. They also say how many are affordable.
const WARM_UP: u32 = 3;
/// Where the budget does not say otherwise.
const ITERATIONS: std::ops::RangeInclusive<usize> = 20..=1000;

/// This rank's device, and all that is measured with. Memory is allocated once: what backends
/// register of it for a graph is registered once.
pub(super) struct Stage {
    stream: Stream,
    begun: Event,
    ended: Event,
    memory: Vec<Memory>,
}

impl Stage {
    /// For calls of up to `largest` bytes in the larger of input and output.
    pub(super) fn new(device: &Device, largest: u64) -> Result<Stage, DeviceError> {
        let bytes = |slot: usize| match slot < LARGE_SLOTS {
            true => largest as usize,
            false => largest.min(SMALL) as usize,
        };
        let memory = (0..SLOTS).map(|slot| Memory::new(device, bytes(slot)));
        Ok(Stage {
            memory: memory.collect::<Result<_, _>>()?,
            stream: Stream::new(device)?,
            begun: Event::new(device)?,
            ended: Event::new(device)?,
        })
    }

    /// Measures what the ranks' devices can, by kernels in `folder` or beside the program: on rank 0,
    /// if all ranks have what it takes. Collective.
    pub(super) fn floors(
        &self,
        group: &Communicator,
        beside: &Beside<'_>,
        folder: Option<&Path>,
        one_process: bool,
    ) -> Result<Option<Floors>, Failure> {
        floor::measure(self, group, beside, folder, one_process)
    }

    /// Measures each group, on all ranks together. `calls` numbers the calls so that each has new
    /// data.
    pub(super) fn measure(
        &self,
        groups: &[&Communicator],
        beside: &Beside<'_>,
        case: &Case,
        iterations: Option<u32>,
        calls: &mut u64,
    ) -> Result<Vec<Measured>, Failure> {
        let counts = |group: &&Communicator| calls_by_target(group, case.op);
        let before: Vec<_> = groups.iter().map(counts).collect();
        let mut place = |placement| {
            Setting { stage: self, groups, beside, case, iterations }.place(placement, calls)
        };
        let places = place(Placement::OutOfPlace)?.into_iter().zip(place(Placement::InPlace)?);
        let all = groups.iter().zip(before).zip(places);
        Ok(all.map(|((group, before), places)| measured(group, case.op, &before, places)).collect())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // After an error there may be work left that uses the memory; what it fails with now is not
        // what went wrong first.
        let _ = self.stream.synchronize();
    }
}

/// What is measured of one size.
struct Setting<'s> {
    stage: &'s Stage,
    groups: &'s [&'s Communicator],
    beside: &'s Beside<'s>,
    case: &'s Case,
    iterations: Option<u32>,
}

impl Setting<'_> {
    /// Measures all groups in one placement.
    fn place(&self, placement: Placement, calls: &mut u64) -> Result<Vec<Placed>, Failure> {
        let Setting { stage, groups, beside, case, .. } = *self;
        let (count, proofs) = match case.size() <= SMALL {
            true => (SLOTS, PROOFS),
            false => (LARGE_SLOTS, LARGE_PROOFS),
        };
        let mut slots = Slots::new(case, placement, &stage.memory[..count], &stage.stream)?;
        let mut trials = Vec::with_capacity(groups.len());
        for group in groups {
            let mut trial = Trial::new(stage, group, beside, case, &slots)?;
            for proof in 0..proofs {
                trial.prove(&mut slots, calls, proof)?;
            }
            trial.choose_batch(&slots)?;
            let iterations = self.iterations(&trial, &slots)?;
            trials.push((trial, iterations));
        }
        for round in 0..ROUNDS {
            for (trial, iterations) in &mut trials {
                let until = |round: usize| *iterations * round / ROUNDS;
                for _ in until(round)..until(round + 1) {
                    trial.sample(&slots)?;
                }
            }
        }
        let finish = |(mut trial, _): (Trial<'_>, usize)| {
            trial.prove_batch(&mut slots, calls, proofs)?;
            trial.finish()
        };
        trials.into_iter().map(finish).collect()
    }

    /// How many samples are taken of a trial: the same number on every rank.
    fn iterations(&self, trial: &Trial<'_>, slots: &Slots<'_>) -> Result<usize, Failure> {
        let start = Instant::now();
        for _ in 0..WARM_UP {
            trial.time(slots)?;
        }
        let each: Duration = start.elapsed() / WARM_UP;
        let affordable = affordable(self.beside, each, ITERATIONS)?;
        Ok(self.iterations.map_or(affordable, |iterations| iterations as usize))
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Failure {
        Failure::check(error.to_string())
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Failure {
        match error.is_loss() {
            true => Failure::lost(error.to_string()),
            false => Failure::check(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
