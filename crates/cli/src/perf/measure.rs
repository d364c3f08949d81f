//! One size on one group on host memory: is it right, and how long does it take?

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use crossover_core::call::Op;
use crossover_core::communicator::{CallError, Communicator};

use super::beside::Beside;
use super::case::Case;
use super::slot::{Placement, Slot};
use super::stats::Times;
use crate::failure::Failure;
use crate::group::Seat;

/// Calls before the clock counts. They also say how many iterations are affordable.
const WARM_UP: u32 = 5;
/// Time for the iterations of one size in one placement.
const BUDGET: Duration = Duration::from_millis(150);
/// Where the budget does not say otherwise.
const ITERATIONS: RangeInclusive<usize> = 20..=10_000;
/// Up to this size, calls go round over more buffers.
pub(super) const SMALL: u64 = 1 << 20; // size: beyond it, memory matters more

/// What was found out about one size.
pub(super) struct Measured {
    pub(super) out_of_place: Placed,
    pub(super) in_place: Placed,
    /// Who really ran, by the group's counters; more than one only if something is wrong.
    pub(super) ran: Vec<String>,
}

/// In one placement.
pub(super) struct Placed {
    /// Wrong elements of all ranks.
    pub(super) wrong: u64,
    /// For a call, of the slowest rank in each iteration.
    pub(super) times: Times,
    /// Calls of an iteration.
    pub(super) calls: usize,
    /// Microseconds for a call that its caller waits for, where the call goes on after that.
    pub(super) host: Option<f64>,
}

/// Measures, on all ranks together. `calls` numbers the calls so that each has new data.
pub(super) fn measure(
    group: &Communicator,
    case: &Case,
    iterations: Option<u32>,
    calls: &mut u64,
) -> Result<Measured, Failure> {
    let before = calls_by_target(group, case.op);
    let out_of_place = place(group, case, Placement::OutOfPlace, iterations, calls)?;
    let in_place = place(group, case, Placement::InPlace, iterations, calls)?;
    Ok(measured(group, case.op, &before, (out_of_place, in_place)))
}

/// Both placements, and who has run since a group's counters were these.
pub(super) fn measured(
    group: &Communicator,
    op: Op,
    before: &[(String, u64)],
    (out_of_place, in_place): (Placed, Placed),
) -> Measured {
    let after = calls_by_target(group, op);
    let ran = after.into_iter().filter(|count| !before.contains(count));
    Measured { out_of_place, in_place, ran: ran.map(|(target, _)| target).collect() }
}

fn place(
    group: &Communicator,
    case: &Case,
    placement: Placement,
    iterations: Option<u32>,
    calls: &mut u64,
) -> Result<Placed, Failure> {
    let count = if case.size() <= SMALL { 4 } else { 2 };
    let slots = std::iter::repeat_with(|| Slot::new(case, placement)).take(count);
    let mut slots: Vec<Slot> = slots.collect::<Result<_, _>>()?;
    let beside = Beside::new(group, case.op);

    let mut wrong = 0;
    for slot in &mut slots {
        *calls += 1;
        slot.load(*calls);
        slot.run(group).map_err(|error| failure(group, error))?;
        wrong += slot.count_wrong();
    }
    let wrong = beside.sum(wrong)?;

    let warm_up = samples(group, &beside, &mut slots, WARM_UP as usize)?;
    let affordable = affordable(&beside, warm_up.1 / WARM_UP, ITERATIONS)?;
    let iterations = iterations.map_or(affordable, |iterations| iterations as usize);
    let (mut samples, _) = samples(group, &beside, &mut slots, iterations)?;
    beside.max(&mut samples)?;
    Ok(Placed { wrong, times: Times::of(samples), calls: 1, host: None })
}

/// A call that nobody takes is refused alike on every rank; what else goes wrong, each rank tells.
pub(super) fn failure(group: &Communicator, error: CallError) -> Failure {
    let agreed = matches!(error, CallError::NothingEligible { .. });
    let seat = Seat { rank: group.rank(), world: group.world() };
    let failure = Failure::from(error);
    if agreed { failure.on_all_ranks(seat) } else { failure }
}

/// Nanoseconds of each call on this rank, and of all with what is between them.
fn samples(
    group: &Communicator,
    beside: &Beside<'_>,
    slots: &mut [Slot],
    iterations: usize,
) -> Result<(Vec<u64>, Duration), Failure> {
    let mut samples = Vec::with_capacity(iterations);
    let first = Instant::now();
    for iteration in 0..iterations {
        let slot = &mut slots[iteration % slots.len()];
        beside.barrier()?;
        let start = Instant::now();
        slot.run(group)?;
        samples.push(start.elapsed().as_nanos() as u64);
    }
    Ok((samples, first.elapsed()))
}

/// How many iterations that take so long on this rank the budget allows: the same number on every
/// rank.
pub(super) fn affordable(
    beside: &Beside<'_>,
    each: Duration,
    range: RangeInclusive<usize>,
) -> Result<usize, Failure> {
    let mut slowest = [each.as_nanos() as u64];
    beside.max(&mut slowest)?;
    let affordable = BUDGET.as_nanos() as u64 / slowest[0].max(1);
    Ok((affordable as usize).clamp(*range.start(), *range.end()))
}

/// How many calls of this op each target has run.
pub(super) fn calls_by_target(group: &Communicator, op: Op) -> Vec<(String, u64)> {
    let mut targets: Vec<(String, u64)> = Vec::new();
    for count in group.counters().into_iter().filter(|count| count.op == op) {
        match targets.iter_mut().find(|(target, _)| *target == count.target) {
            Some((_, calls)) => *calls += count.calls,
            None => targets.push((count.target, count.calls)),
        }
    }
    targets
}
