//! The engine's steps.

use std::time::Duration;

use crossover::policy::Settings;
use crossover::{CallBuffers, CallError, CallSig, CommitError, Communicator, call_exit_code};
use crossover_core::call::{Dtype, Mode, Op, ReduceOp};
use crossover_device::error::DeviceError;
use crossover_device::graph::Graph;

use super::fault::{Change, Faults, Point};
use super::form::Groups;
use super::tensors::{PLACE, Tensors};
use crate::data::Rng;

/// How much there is to do.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Steps.
    pub steps: u32,
    /// Are all calls but the broadcast captured once, and replayed in each step?
    pub graphs: bool,
    /// Now and then a rank sleeps, for so long at most.
    pub jitter: Duration,
}

/// How an engine's work came to its end before it was done.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A capture could not be ended.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A result is wrong.
    #[error("{0}")]
    Wrong(String),
}

impl Ended {
    /// As the command line's: 1 wrong, 3 nothing eligible, 4 a peer was lost or late.
    pub fn exit_code(&self) -> u8 {
        match self {
            Ended::Call(e) => call_exit_code(e),
            Ended::Commit(e) if e.is_loss() => 4,
            Ended::Commit(_) | Ended::Device(_) | Ended::Wrong(_) => 1,
        }
    }
}

/// An engine at work.
pub struct Engine {
    groups: Groups,
    tensors: Tensors,
    faults: Faults,
    work: Work,
    graphs: Vec<Graph>,
}

impl Engine {
    /// One whose groups are formed.
    ///
    /// # Errors
    ///
    /// The device has no room for its tensors.
    pub fn new(
        groups: Groups,
        settings: &Settings,
        local_rank: u32,
        faults: Faults,
        work: Work,
    ) -> Result<Engine, DeviceError> {
        let tensors = Tensors::new(settings, local_rank)?;
        Ok(Engine { groups, tensors, faults, work, graphs: Vec::new() })
    }

    /// All steps, and the goodbye.
    ///
    /// # Errors
    ///
    /// Something has ended the work.
    pub fn run(mut self) -> Result<(), Ended> {
        if self.work.graphs {
            for graph in 1..=2 {
                self.capture(graph)?;
            }
        }
        for step in 1..=self.work.steps {
            if self.step(step)? == Some(Change::Leave) {
                return Ok(());
            }
        }
        if self.faults.at(Point::Close, 0).is_some() {
            return Ok(());
        }
        self.groups.tp.note_site(Point::Close.name());
        if let Some(ep) = &self.groups.ep {
            ep.close()?;
        }
        Ok(self.groups.tp.close()?)
    }

    /// One step; what comes of it ends the engine if it leaves.
    fn step(&mut self, step: u32) -> Result<Option<Change>, Ended> {
        self.sleep(step);
        let drifts = self.faults.at(Point::State, step);
        if drifts == Some(Change::Leave) {
            return Ok(drifts);
        }
        // What a scheduler would digest: the requests of the batch.
        let digest = u64::from(step) * 0x9E37 + u64::from(drifts == Some(Change::Drift));
        for group in self.groups.all() {
            group.note_site(Point::State.name());
            if drifts != Some(Change::Skip) {
                group.note_state(step, digest);
            }
        }
        if self.work.graphs {
            self.replay(step)?;
        } else {
            let change = self.faults.at(Point::Attn, step);
            if change == Some(Change::Swap) {
                self.experts(step)?;
                self.changed(Point::Attn, step, None)?;
            } else {
                self.changed(Point::Attn, step, change)?;
                self.experts(step)?;
            }
            let change = self.faults.at(Point::Logits, step);
            self.changed(Point::Logits, step, change)?;
        }
        let change = self.faults.at(Point::Sampled, step);
        self.changed(Point::Sampled, step, change)?;
        Ok(None)
    }

    fn experts(&mut self, step: u32) -> Result<(), Ended> {
        if self.groups.ep.is_none() {
            return Ok(());
        }
        for point in EXPERTS {
            let change = self.faults.at(point, step);
            self.changed(point, step, change)?;
        }
        Ok(())
    }

    /// The call of a point, or what is made of it.
    fn changed(&mut self, point: Point, step: u32, change: Option<Change>) -> Result<(), Ended> {
        let mut call = self.call(point, 1, Mode::Eager);
        match change {
            Some(Change::Skip) => return Ok(()),
            Some(Change::Size) => call.count += self.world(),
            Some(Change::Dtype) => call.dtype = Dtype::F16,
            Some(Change::Reduce) => call.reduce_op = ReduceOp::Max,
            Some(Change::Root) => call.root = 1,
            Some(Change::Path) => {
                self.groups.tp.note_site("dense");
                call = CallSig { count: 8, ..self.call(Point::Sampled, 1, Mode::Eager) };
                return self.eager(point, &call);
            }
            Some(Change::Extra) => self.checked(point, step, &call)?,
            _ => {}
        }
        self.checked(point, step, &call)
    }

    fn checked(&mut self, point: Point, step: u32, call: &CallSig<'_>) -> Result<(), Ended> {
        self.group(point).note_site(point.name());
        self.tensors.fill(value(self.rank(), step))?;
        self.eager(point, call)?;
        self.check(call, 0, step)
    }

    fn eager(&mut self, point: Point, call: &CallSig<'_>) -> Result<(), Ended> {
        let places = self.tensors.places();
        self.enqueue(point, call, places, 0)?;
        self.tensors.wait()?;
        Ok(self.group(point).check()?)
    }

    /// The output goes to the place of this number.
    fn enqueue(
        &self,
        point: Point,
        call: &CallSig<'_>,
        (input, output): (*const u8, *mut u8),
        place: usize,
    ) -> Result<(), CallError> {
        let output = output.wrapping_add(place * PLACE * size_of::<f32>());
        let stream = self.tensors.stream().map_or(0, |stream| stream.raw());
        let buffers = CallBuffers { input, output, stream };
        // SAFETY: no call has more elements than there is room for, and tensors live until the stream
        // has been waited for; a graph is not replayed after they are gone.
        unsafe { self.group(point).run(call, &buffers) }
    }

    /// Captures all calls but the broadcast as a graph of its own.
    fn capture(&mut self, graph: u32) -> Result<(), Ended> {
        let change = self.faults.at(Point::Capture, graph);
        let mut calls = self.captured(graph);
        if change == Some(Change::Skip) {
            calls.pop();
        }
        if change == Some(Change::Size) {
            calls[0].1.count += self.world();
        }
        for group in self.groups.all() {
            let own = calls.iter().filter(|(point, _)| std::ptr::eq(self.group(*point), group));
            group.prepare(&own.map(|(_, call)| *call).collect::<Vec<_>>())?;
        }
        let places = self.tensors.places();
        let stream = self.tensors.stream().ok_or_else(|| {
            Ended::Wrong("graphs are captured on a device: set CROSSOVER_DEVICE".to_owned())
        })?;
        let captured = stream.capture(|| {
            for (place, (point, call)) in calls.iter().enumerate() {
                self.group(*point).note_site(point.name());
                self.enqueue(*point, call, places, place)?;
            }
            Ok::<(), Ended>(())
        })?;
        self.faults.at(Point::Commit, graph);
        for group in self.groups.all() {
            group.commit()?;
        }
        self.graphs.push(captured);
        Ok(())
    }

    /// What a graph consists of, in order; the place of each is that of its output.
    fn captured(&self, graph: u32) -> Vec<(Point, CallSig<'static>)> {
        let experts = self.groups.ep.iter().flat_map(|_| EXPERTS);
        let points = std::iter::once(Point::Attn).chain(experts).chain([Point::Logits]);
        points.map(|point| (point, self.call(point, graph as usize, Mode::Graph))).collect()
    }

    fn replay(&mut self, step: u32) -> Result<(), Ended> {
        let (mut graph, mut is_busy) = (1 + step % 2, false);
        match self.faults.at(Point::Replay, step) {
            Some(Change::Skip) => return Ok(()),
            Some(Change::Other) => graph = 3 - graph,
            Some(Change::Eager) => {
                let call = self.call(Point::Attn, graph as usize, Mode::Eager);
                return self.checked(Point::Attn, step, &call);
            }
            Some(Change::Busy) => is_busy = true,
            _ => {}
        }
        self.tensors.fill(value(self.rank(), step))?;
        for group in self.groups.all() {
            group.note_site(Point::Replay.name());
            group.note_replay(graph.into())?;
        }
        if is_busy {
            self.tensors.occupy()?;
        }
        let stream = self.tensors.stream().map_or(0, |stream| stream.raw());
        self.graphs[graph as usize - 1].replay(stream)?;
        self.tensors.wait()?;
        for group in self.groups.all() {
            group.check()?;
        }
        let calls = self.captured(graph);
        calls.iter().enumerate().try_for_each(|(place, (_, call))| self.check(call, place, step))
    }

    /// The call that a point makes, so many times as large.
    fn call(&self, point: Point, times: usize, mode: Mode) -> CallSig<'static> {
        let world = self.world();
        let (op, count) = match point {
            Point::Attn => (Op::AllReduce, 1024),
            Point::Experts => (Op::AllToAll, 16 * world),
            Point::Combine => (Op::ReduceScatter, 128 * world),
            Point::Logits => (Op::AllGather, 64),
            _ => (Op::Broadcast, 4),
        };
        let call = self.group(point).signature::<f32>(op, count * times);
        CallSig { mode, ..call }
    }

    fn group(&self, point: Point) -> &Communicator {
        match (point, &self.groups.ep) {
            (Point::Experts | Point::Combine, Some(ep)) => ep,
            _ => &self.groups.tp,
        }
    }

    /// Is the output at this place what it must be?
    fn check(&self, call: &CallSig<'_>, place: usize, step: u32) -> Result<(), Ended> {
        let world = self.world();
        let of = |rank: usize| value(rank as u32, step);
        let want: Vec<f32> = match call.op {
            Op::AllReduce => vec![(0..world).map(of).sum(); call.count],
            Op::ReduceScatter => vec![(0..world).map(of).sum(); call.count / world],
            Op::Broadcast => vec![of(call.root as usize); call.count],
            Op::AllGather => (0..world).flat_map(|rank| vec![of(rank); call.count]).collect(),
            _ => (0..world).flat_map(|rank| vec![of(rank); call.count / world]).collect(),
        };
        let got = self.tensors.read(place, want.len())?;
        match got.iter().zip(&want).position(|(got, want)| got != want) {
            None => Ok(()),
            Some(at) => Err(Ended::Wrong(format!(
                "step {step}, {}: element {at} is {}, not {}",
                call.op, got[at], want[at]
            ))),
        }
    }

    fn sleep(&self, step: u32) {
        let most = self.work.jitter.as_micros() as u64;
        let mut rng = Rng::new(u64::from(step), self.rank());
        if most > 0 && rng.below(40) == 0 {
            std::thread::sleep(Duration::from_micros(rng.below(most)));
        }
    }

    fn rank(&self) -> u32 {
        self.groups.tp.rank()
    }

    fn world(&self) -> usize {
        self.groups.tp.world() as usize
    }
}

/// The calls of the other group.
const EXPERTS: [Point; 2] = [Point::Experts, Point::Combine];

/// What a rank's input is full of: a small whole number, whose sums are exact.
fn value(rank: u32, step: u32) -> f32 {
    (rank + 1 + step % 7) as f32
}
