//! One group's calls of one case: are they right, and how long do they take?

use std::time::{Duration, Instant};

use crossover_core::call::{CallSig, Mode};
use crossover_core::communicator::Communicator;
use crossover_device::graph::Graph;

use super::Stage;
use super::slot::Slots;
use crate::failure::Failure;
use crate::perf::beside::Beside;
use crate::perf::case::Case;
use crate::perf::measure::{Placed, failure};
use crate::perf::slot::Placement;
use crate::perf::stats::Times;

/// How long a batch of calls takes at least, in nanoseconds: so long that a replay is ready in the
/// stream before the one ahead of it ends, and that neither its start, of 3 us and more, nor
/// events' resolution matters.
const BATCH_TIME: u64 = 600_000;
/// Numbers of calls in a batch: the least that takes its time. Odd, as is what alternates.
const BATCHES: [usize; 7] = [5, 11, 21, 41, 101, 201, 401];
/// How late a rank comes that is late on purpose.
const LAG: Duration = Duration::from_millis(2);

/// A group and its calls. What it is timed with, it is also checked with.
pub(super) struct Trial<'t> {
    stage: &'t Stage,
    group: &'t Communicator,
    beside: &'t Beside<'t>,
    call: CallSig<'static>,
    /// The call of each slot, once; in graphs.
    each: Option<Graph>,
    /// A batch, if it is another number of calls; in graphs.
    batch: Option<Graph>,
    calls_of_batch: usize,
    wrong: u64,
    /// Nanoseconds for a call of each batch on this rank, and of its host alone.
    samples: Vec<[u64; 2]>,
}

impl<'t> Trial<'t> {
    /// Prepares and records what is replayed. Collective.
    pub(super) fn new(
        stage: &'t Stage,
        group: &'t Communicator,
        beside: &'t Beside<'t>,
        case: &Case,
        slots: &Slots<'_>,
    ) -> Result<Trial<'t>, Failure> {
        let call = case.signature(group.plan().contract());
        let (wrong, samples) = (0, Vec::new());
        let calls_of_batch = slots.len();
        let (each, batch) = (None, None);
        let mut trial =
            Trial { stage, group, beside, call, each, batch, calls_of_batch, wrong, samples };
        if case.mode == Mode::Graph {
            group.prepare(&[call]).map_err(|error| failure(group, error))?;
            trial.each = Some(trial.record(slots, slots.len())?);
        }
        Ok(trial)
    }

    /// Makes each slot's call once with new data, and checks every element. Ranks take turns in
    /// being late, but for proof 0.
    pub(super) fn prove(
        &mut self,
        slots: &mut Slots<'_>,
        calls: &mut u64,
        proof: u32,
    ) -> Result<(), Failure> {
        slots.load(calls)?;
        self.be_late(proof)?;
        match &self.each {
            Some(graph) => graph.replay(self.stage.stream.raw())?,
            None => self.enqueue(slots, slots.len())?,
        }
        self.check(slots)
    }

    /// The same with a batch, as it is timed. In place, where a slot's second call of a batch works
    /// on the results of the first, each call is made once.
    pub(super) fn prove_batch(
        &mut self,
        slots: &mut Slots<'_>,
        calls: &mut u64,
        proof: u32,
    ) -> Result<(), Failure> {
        if slots.placement() == Placement::InPlace {
            return self.prove(slots, calls, proof);
        }
        slots.load(calls)?;
        self.be_late(proof)?;
        self.put(slots)?;
        self.check(slots)
    }

    /// Finds out how many calls a batch is of, the same on every rank.
    pub(super) fn choose_batch(&mut self, slots: &Slots<'_>) -> Result<(), Failure> {
        self.time(slots)?;
        let mut each = [self.time(slots)?[0]];
        self.beside.max(&mut each)?;
        let long_enough = |calls: &&usize| **calls as u64 * each[0] >= BATCH_TIME;
        let most = BATCHES[BATCHES.len() - 1];
        self.calls_of_batch = *BATCHES.iter().find(long_enough).unwrap_or(&most);
        if self.each.is_some() && self.calls_of_batch != slots.len() {
            self.batch = Some(self.record(slots, self.calls_of_batch)?);
        }
        Ok(())
    }

    /// Takes a sample.
    pub(super) fn sample(&mut self, slots: &Slots<'_>) -> Result<(), Failure> {
        let sample = self.time(slots)?;
        self.samples.push(sample);
        Ok(())
    }

    /// Nanoseconds for a call of a batch, and of the host alone. The batch follows another, so that
    /// it starts with ranks in step, and with its own start behind it.
    pub(super) fn time(&self, slots: &Slots<'_>) -> Result<[u64; 2], Failure> {
        let Stage { stream, begun, ended, .. } = self.stage;
        self.beside.barrier()?;
        match self.each {
            Some(_) => self.put(slots)?,
            None => self.enqueue(slots, slots.len())?,
        }
        begun.record(stream.raw())?;
        let start = Instant::now();
        self.put(slots)?;
        let host = start.elapsed().as_nanos() as u64;
        ended.record(stream.raw())?;
        self.wait()?;
        let milliseconds = f64::from(ended.since(begun)?);
        let calls = self.calls_of_batch as u64;
        Ok([(milliseconds * 1e6) as u64 / calls, host / calls])
    }

    /// What was found out. Collective.
    pub(super) fn finish(self) -> Result<Placed, Failure> {
        let wrong = self.beside.sum(self.wrong)?;
        let mut both = self.samples.concat();
        self.beside.max(&mut both)?;
        let of = |kind: usize| Times::of(both.iter().skip(kind).step_by(2).copied().collect());
        let calls = self.calls_of_batch;
        let host = self.each.is_none().then(|| of(1).p50);
        Ok(Placed { wrong, times: of(0), calls, host })
    }

    /// Puts a batch into the stream.
    fn put(&self, slots: &Slots<'_>) -> Result<(), Failure> {
        match self.batch.as_ref().or(self.each.as_ref()) {
            Some(graph) => Ok(graph.replay(self.stage.stream.raw())?),
            None => self.enqueue(slots, self.calls_of_batch),
        }
    }

    fn enqueue(&self, slots: &Slots<'_>, calls: usize) -> Result<(), Failure> {
        (0..calls).try_for_each(|at| {
            slots.run(at, self.group, &self.call).map_err(|error| failure(self.group, error))
        })
    }

    /// Records so many calls. Collective.
    fn record(&self, slots: &Slots<'_>, calls: usize) -> Result<Graph, Failure> {
        let graph = self.stage.stream.capture(|| self.enqueue(slots, calls));
        if graph.is_err() {
            self.group.discard();
        }
        let graph = graph?;
        self.group.commit()?;
        Ok(graph)
    }

    fn be_late(&self, proof: u32) -> Result<(), Failure> {
        self.beside.barrier()?;
        if proof > 0 && proof % self.group.world() == self.group.rank() {
            std::thread::sleep(LAG);
        }
        Ok(())
    }

    /// What was enqueued is done, or has failed on the device.
    fn wait(&self) -> Result<(), Failure> {
        self.stage.stream.synchronize()?;
        self.group.check().map_err(|error| failure(self.group, error))
    }

    fn check(&mut self, slots: &mut Slots<'_>) -> Result<(), Failure> {
        self.wait()?;
        self.wrong += slots.count_wrong()?;
        Ok(())
    }
}
