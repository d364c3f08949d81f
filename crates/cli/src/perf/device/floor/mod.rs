//! What the ranks' devices can, measured before what is built on them: rank 0's device by itself
//! ([`alone`]), then what goes between ranks 0 and 1 ([`pair`]).
//!
//! Collective. What may make a thread wait for the whole device (memory, kernels, graphs) is done while no rank's
//! kernel waits for another's, and ranks meet behind it.

mod alone;
mod pair;

use std::path::Path;
use std::time::{Duration, Instant};

use crossover_core::communicator::Communicator;
use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::graph::Graph;
use crossover_device::images::Places;
use crossover_device::library::Library;
use crossover_device::memory::Buffer;
use crossover_device::module::{Kernel, Shape};
use crossover_kernel_abi::{CopyArgs, MAX_THREADS};

use super::Stage;
use crate::failure::Failure;
use crate::out;
use crate::perf::beside::Beside;
use crate::perf::floors::Floors;

/// Bytes before data, in which ranks and kernels meet.
const HEAD: usize = 4096;
/// What a driver maps for another process at a time.
const UNIT: usize = 2 << 20; // size: CUDA's
/// A copy that no cache holds reads so many times its bytes, and writes as many.
const BEYOND_CACHE: usize = 4;
/// Time for samples of one figure.
const BUDGET: Duration = Duration::from_millis(100);
/// For a device that does not tell of its cache.
const SOME_CACHE: u64 = 32 << 20; // size: more than copies of its fourth need to take time

/// The kernels of `kernels-common/kernels/floor`, and memory for them.
struct Ground {
    empty: Kernel,
    trip: Kernel,
    copy: Kernel,
    /// Blocks that fill the device.
    blocks: u32,
    cache: u64,
    /// Bytes that are copied where no cache shall hold them.
    bytes: usize,
    /// What this rank's kernels alone use: at its start what they wait with, behind it what is read.
    own: Buffer,
    /// What the other rank's kernels reach: at its start a word, behind it what is written.
    area: Buffer,
}

impl Ground {
    /// Ranks that only keep others company have no bytes to copy.
    fn prepare(stage: &Stage, rank: u32, folder: Option<&Path>) -> Result<Ground, DeviceError> {
        let device = stage.stream.device();
        let library = Library::open(device, &Places::new(folder))?;
        if library.images().abi() != crossover_kernel_abi::digest() {
            return Err(DeviceError::Invalid(format!(
                "the kernel images in {} are of another version than this program: build them again",
                library.images().folder().display()
            )));
        }
        let copy = library.kernel("floor_copy")?;
        let cache = match device.description().l2 {
            0 => SOME_CACHE,
            bytes => bytes,
        };
        let bytes = if rank < 2 { cache as usize * BEYOND_CACHE } else { 0 };
        let buffer = || Buffer::new(device, (HEAD + bytes).next_multiple_of(UNIT));
        let ground = Ground {
            empty: library.kernel("floor_empty")?,
            trip: library.kernel("floor_trip")?,
            blocks: copy.resident_blocks(MAX_THREADS as u32)?,
            copy,
            cache,
            bytes,
            own: buffer()?,
            area: buffer()?,
        };
        ground.own.fill(0, &stage.stream)?;
        ground.area.fill(0, &stage.stream)?;
        Ok(ground)
    }

    /// Records copies of so many bytes of this rank's own to an address, one after the other.
    fn record_copies(
        &self,
        stage: &Stage,
        to: u64,
        bytes: usize,
        copies: usize,
    ) -> Result<Graph, DeviceError> {
        let from = self.own.address() + HEAD as u64;
        let args = CopyArgs { from, to, bytes: bytes as u64, early: 1 };
        let threads = MAX_THREADS as u32;
        let shape = Shape { blocks: self.blocks, threads, programmatic: true };
        stage.stream.capture(|| {
            (0..copies).try_for_each(|_| {
                // SAFETY: both ranges are in buffers that outlive the graph and its replays.
                unsafe { self.copy.launch(shape, args.as_bytes(), stage.stream.raw()) }
            })
        })
    }
}

/// Measures. `None` on all ranks if one has not what it takes, which that one says; and on all but
/// rank 0, which reports.
pub(super) fn measure(
    stage: &Stage,
    group: &Communicator,
    beside: &Beside<'_>,
    folder: Option<&Path>,
    one_process: bool,
) -> Result<Option<Floors>, Failure> {
    let ground = Ground::prepare(stage, group.rank(), folder);
    let Some(ground) = on_all(group, beside, ground)? else { return Ok(None) };
    let alone = match group.rank() {
        0 => alone::measure(stage, &ground).map(Some),
        _ => Ok(None),
    };
    let Some(alone) = on_all(group, beside, alone)? else { return Ok(None) };
    let node = alone.as_ref().map_or(0.0, |alone| alone.programmatic_us);
    let pair = match group.world() {
        1 => None,
        _ => pair::measure(stage, &ground, group, beside, one_process, node)?,
    };
    let ranks_per_device = group.facts().ranks_per_unit();
    Ok(alone.map(|alone| Floors {
        launch_us: alone.launch_us,
        empty_us: alone.empty_us,
        programmatic_us: alone.programmatic_us,
        memory: alone.memory,
        cached: alone.cached,
        cache: ground.cache,
        ranks_per_device,
        pair,
    }))
}

/// What a rank has, if all have theirs; the first that has not says why. Collective.
fn on_all<T>(
    group: &Communicator,
    beside: &Beside<'_>,
    had: Result<T, DeviceError>,
) -> Result<Option<T>, Failure> {
    let mine = u64::from(group.world() - group.rank());
    let mut first = [if had.is_err() { mine } else { 0 }];
    beside.max(&mut first)?;
    match had {
        Ok(had) if first == [0] => Ok(Some(had)),
        Ok(_) => Ok(None),
        Err(why) => {
            if first == [mine] {
                out::note(&format!("perf: not all that devices can is measured: {why}"));
            }
            Ok(None)
        }
    }
}

/// Nanoseconds between a graph's start and end, behind a replay ahead of it.
fn time(stage: &Stage, graph: &Graph) -> Result<f64, DeviceError> {
    let Stage { stream, begun, ended, .. } = stage;
    graph.replay(stream.raw())?;
    begun.record(stream.raw())?;
    graph.replay(stream.raw())?;
    ended.record(stream.raw())?;
    stream.synchronize()?;
    Ok(f64::from(ended.since(begun)?) * 1e6)
}

/// The middle one of as many samples as there is time for, at least one.
fn median(
    most: usize,
    mut sample: impl FnMut() -> Result<f64, DeviceError>,
) -> Result<f64, DeviceError> {
    let start = Instant::now();
    let mut samples = vec![sample()?];
    while samples.len() < most && start.elapsed() < BUDGET {
        samples.push(sample()?);
    }
    Ok(middle(samples))
}

/// Of at least one.
fn middle(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// 10^9 bytes a second of something that takes nanoseconds, of which an empty kernel takes some.
fn rate(bytes: usize, nanoseconds: f64, empty: f64) -> f64 {
    bytes as f64 / (nanoseconds - empty).max(1.0)
}

/// Of the device that a stage is on.
fn device(stage: &Stage) -> &Device {
    stage.stream.device()
}
