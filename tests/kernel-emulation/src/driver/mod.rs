//! A driver whose devices are the processor. Memory is the host's, a stream is a thread that works
//! off its operations in order, a kernel is what an image of [`crate::compile`] holds.
//!
//! It is strict where a real one may be: what is freed is gone at once, memory is full of 0xa5 before
//! anybody writes, the page behind an allocation may not be touched, and a capture that something not
//! allowed touches is invalid. A kernel that hangs makes its stream fail, with the place.

mod capture;
mod event;
mod host;
mod implementation;
mod memory;
mod stream;

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossover_device::error::DeviceError;

use self::event::Event;
pub use self::host::{Entry, Function as HostFunction};
pub use self::memory::Allocations;
use self::memory::Memory;
use self::stream::{Function, Op, Stream};
use crate::runtime::Runtime;

/// What the devices are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many.
    pub devices: u32,
    /// Multiprocessors of each. Each holds one block at a time, says the driver; more run all the same.
    pub multiprocessors: u32,
    /// Bytes of the last cache that each tells of.
    pub l2: u64,
    /// Another one is another schedule.
    pub seed: u64,
    /// A kernel hangs if no kernel of the process makes progress for so long. Longer than a kernel's
    /// own budget, or the kernel cannot say for whom it waits.
    pub hang: Duration,
    /// How memory can be shared with other processes.
    pub allocations: Allocations,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            devices: 8,
            multiprocessors: 8,
            l2: 1 << 20,
            seed: 1,
            hang: Duration::from_secs(60),
            allocations: Allocations::Legacy,
        }
    }
}

/// The driver. Cheap to make; [`install`](crossover_device::install) it under the name `emulated`.
pub struct Emulated {
    options: Options,
    memory: Memory,
    retained: Vec<AtomicU32>,
    handles: AtomicU64,
    streams: Mutex<HashMap<u64, Arc<Stream>>>,
    /// Of each device; its handle is 0 to callers.
    default_streams: Mutex<HashMap<u32, Arc<Stream>>>,
    events: Mutex<HashMap<u64, Arc<Event>>>,
    modules: Mutex<HashMap<u64, Arc<Runtime>>>,
    functions: Mutex<HashMap<u64, Function>>,
    graphs: Mutex<HashMap<u64, Arc<[Op]>>>,
    /// An image is loaded once, whoever asks, so that all its kernels share one watchdog.
    images: Mutex<Vec<(Vec<u8>, Arc<Runtime>)>>,
}

impl Emulated {
    /// Devices of this kind.
    pub fn new(options: Options) -> Arc<Emulated> {
        Arc::new(Emulated {
            memory: Memory::new(options.allocations),
            retained: (0..options.devices).map(|_| AtomicU32::new(0)).collect(),
            options,
            handles: AtomicU64::new(1),
            streams: Mutex::default(),
            default_streams: Mutex::default(),
            events: Mutex::default(),
            modules: Mutex::default(),
            functions: Mutex::default(),
            graphs: Mutex::default(),
            images: Mutex::default(),
        })
    }

    /// From now on kernels of this stream oversleep, up to so long at a time. Zero is none.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn delay(&self, stream: u64, longest: Duration) -> Result<(), DeviceError> {
        self.stream(stream)?.delay(longest);
        Ok(())
    }

    /// What this thread's memory is allocated as from now on. Other threads', whose tests run beside this
    /// one's, stays as it is.
    pub fn set_allocations(kind: Allocations) {
        memory::KIND.set(Some(kind));
    }

    /// Reads an image from its file, for [`Driver::load`](crossover_device::driver::Driver::load).
    ///
    /// # Errors
    /// It cannot be read.
    pub fn image(path: &Path) -> Result<Vec<u8>, DeviceError> {
        std::fs::read(path).map_err(|e| DeviceError::Absent(format!("{}: {e}", path.display())))
    }

    fn handle(&self) -> u64 {
        self.handles.fetch_add(1, Ordering::Relaxed)
    }

    fn stream(&self, stream: u64) -> Result<Arc<Stream>, DeviceError> {
        if stream == 0 {
            let ordinal = current()?;
            let mut streams = lock(&self.default_streams);
            let made = streams.entry(ordinal).or_insert_with(|| self.new_stream(ordinal, 0));
            return Ok(Arc::clone(made));
        }
        find(&self.streams, stream, "stream")
    }

    fn new_stream(&self, ordinal: u32, number: u64) -> Arc<Stream> {
        let seed = self.options.seed.wrapping_mul(1_000_003).wrapping_add(number * 8_191);
        Stream::start(ordinal, number, seed, self.options.hang)
    }

    fn enqueue(&self, stream: u64, op: Op) -> Result<(), DeviceError> {
        self.stream(stream)?.push(op)
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        for streams in [
            lock(&self.streams).drain().map(|(_, stream)| stream).collect::<Vec<_>>(),
            lock(&self.default_streams).drain().map(|(_, stream)| stream).collect(),
        ] {
            streams.iter().for_each(|stream| stream.stop());
        }
    }
}

thread_local! {
    /// The device whose context is current on this thread, plus one.
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// The current device.
fn current() -> Result<u32, DeviceError> {
    match CURRENT.get() {
        0 => Err(failed("current", 201, "no context is current on this thread")),
        handle => Ok(handle - 1),
    }
}

/// An error as a vendor's call gives one; the codes are CUDA's.
fn failed(call: &'static str, code: i32, text: impl Into<String>) -> DeviceError {
    DeviceError::Call { call, code, text: text.into() }
}

/// Nothing that holds one of these locks can panic half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find<T: Clone>(
    table: &Mutex<HashMap<u64, T>>,
    handle: u64,
    what: &'static str,
) -> Result<T, DeviceError> {
    let found = lock(table).get(&handle).cloned();
    found.ok_or_else(|| failed(what, 400, format!("there is no {what} {handle}")))
}

fn take<T>(
    table: &Mutex<HashMap<u64, T>>,
    handle: u64,
    what: &'static str,
) -> Result<T, DeviceError> {
    let found = lock(table).remove(&handle);
    found.ok_or_else(|| failed(what, 400, format!("there is no {what} {handle}")))
}
