//! What a device can by itself, on rank 0 while the others wait.

use std::time::Instant;

use crossover_device::error::DeviceError;
use crossover_device::module::Shape;
use crossover_kernel_abi::EmptyArgs;

use super::{Ground, HEAD, Stage, median, rate, time};

/// Launches of a sample: fewer than a stream has room for.
const LAUNCHES: usize = 101;
/// Kernels of a graph: so many that its start, which takes tens of them, is not theirs.
const NODES: usize = 1001;
/// Copies of a graph, and of one that the cache holds: so many that events' resolution does not matter.
const COPIES: usize = 1;
const CACHED_COPIES: usize = 11;
const SAMPLES: usize = 21;
/// What is read, and what is written, are so small a part of the cache that it holds both.
const OF_CACHE: usize = 4;

/// As in [`Floors`](crate::perf::floors::Floors).
pub(super) struct Alone {
    pub(super) launch_us: f64,
    pub(super) empty_us: f64,
    pub(super) programmatic_us: f64,
    pub(super) memory: f64,
    pub(super) cached: f64,
}

pub(super) fn measure(stage: &Stage, ground: &Ground) -> Result<Alone, DeviceError> {
    let launch_us = launch(stage, ground)? / 1e3;
    let empty_us = node(stage, ground, false)? / 1e3;
    let programmatic = node(stage, ground, true)?;
    let copy = |bytes: usize, copies: usize| -> Result<f64, DeviceError> {
        let to = ground.area.address() + HEAD as u64;
        let graph = ground.record_copies(stage, to, bytes, copies)?;
        let each = median(SAMPLES, || Ok(time(stage, &graph)? / copies as f64))?;
        Ok(rate(2 * bytes, each, programmatic))
    };
    Ok(Alone {
        launch_us,
        empty_us,
        programmatic_us: programmatic / 1e3,
        memory: copy(ground.bytes, COPIES)?,
        cached: copy(ground.cache as usize / OF_CACHE, CACHED_COPIES)?,
    })
}

/// Nanoseconds of the host for a launch.
fn launch(stage: &Stage, ground: &Ground) -> Result<f64, DeviceError> {
    median(SAMPLES, || {
        let start = Instant::now();
        empty(stage, ground, LAUNCHES, false)?;
        let nanoseconds = start.elapsed().as_nanos() as f64 / LAUNCHES as f64;
        stage.stream.synchronize()?;
        Ok(nanoseconds)
    })
}

/// Nanoseconds of an empty kernel in a graph.
fn node(stage: &Stage, ground: &Ground, programmatic: bool) -> Result<f64, DeviceError> {
    let graph = stage.stream.capture(|| empty(stage, ground, NODES, programmatic))?;
    median(SAMPLES, || Ok(time(stage, &graph)? / NODES as f64))
}

/// Puts so many empty kernels into the stream.
fn empty(
    stage: &Stage,
    ground: &Ground,
    kernels: usize,
    programmatic: bool,
) -> Result<(), DeviceError> {
    let args = EmptyArgs { early: programmatic.into() };
    let shape = Shape { blocks: 1, threads: 32, programmatic };
    (0..kernels).try_for_each(|_| {
        // SAFETY: it points at nothing.
        unsafe { ground.empty.launch(shape, args.as_bytes(), stage.stream.raw()) }
    })
}
