//! Room for a call's input and output, on host memory or on a device.

use std::sync::{Arc, OnceLock};

use crossover::policy::{DeviceChoice, Settings};
use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::memory::Buffer;
use crossover_device::stream::Stream;
use crossover_kernel_emulation::driver::{Emulated, Options};

use super::busy;

/// Elements that fit.
const ROOM: usize = 16 << 10;

/// Elements that fit into one of the output's places: as many as a graph has calls.
pub(super) const PLACE: usize = ROOM / 4;

/// An input and an output of [`ROOM`] numbers each.
pub(super) enum Tensors {
    Host { input: Vec<f32>, output: Vec<f32> },
    Device { input: Buffer, output: Buffer, stream: Stream },
}

/// The emulated driver of this process, if it was asked for.
static EMULATED: OnceLock<Arc<Emulated>> = OnceLock::new();

/// Makes the emulated driver known, if it is the one that settings ask for.
pub(super) fn install(settings: &Settings) {
    if matches!(&settings.device, DeviceChoice::On { driver, .. } if driver == "emulated") {
        let driver = Emulated::new(Options { multiprocessors: 24, ..Options::default() });
        crossover_device::install("emulated", Arc::clone(&driver) as _);
        let _ = EMULATED.set(driver);
    }
}

impl Tensors {
    /// Where settings say that data is.
    pub(super) fn new(settings: &Settings, local_rank: u32) -> Result<Tensors, DeviceError> {
        let DeviceChoice::On { driver, ordinal } = &settings.device else {
            return Ok(Tensors::Host { input: vec![0.0; ROOM], output: vec![0.0; ROOM] });
        };
        let name = format!("{driver}:{}", ordinal.unwrap_or(local_rank));
        let device: Device = crossover_device::open(&name)?;
        let buffer = || Buffer::new(&device, ROOM * size_of::<f32>());
        Ok(Tensors::Device { input: buffer()?, output: buffer()?, stream: Stream::new(&device)? })
    }

    pub(super) fn stream(&self) -> Option<&Stream> {
        match self {
            Tensors::Host { .. } => None,
            Tensors::Device { stream, .. } => Some(stream),
        }
    }

    /// Addresses of input and output.
    pub(super) fn places(&mut self) -> (*const u8, *mut u8) {
        match self {
            Tensors::Host { input, output } => (input.as_ptr().cast(), output.as_mut_ptr().cast()),
            Tensors::Device { input, output, .. } => {
                (input.address() as *const u8, output.address() as *mut u8)
            }
        }
    }

    /// Every element of the input becomes this.
    pub(super) fn fill(&mut self, value: f32) -> Result<(), DeviceError> {
        match self {
            Tensors::Host { input, .. } => input.fill(value),
            Tensors::Device { input, stream, .. } => input.fill(value.to_bits(), stream)?,
        }
        Ok(())
    }

    /// Puts work into the stream that takes seconds.
    pub(super) fn occupy(&self) -> Result<(), DeviceError> {
        let emulated = EMULATED.get().map(|driver| &**driver);
        self.stream().map_or(Ok(()), |stream| busy::occupy(stream, emulated))
    }

    /// Waits for the stream.
    pub(super) fn wait(&self) -> Result<(), DeviceError> {
        self.stream().map_or(Ok(()), Stream::synchronize)
    }

    /// The first elements of this place of the output.
    pub(super) fn read(&self, place: usize, count: usize) -> Result<Vec<f32>, DeviceError> {
        let from = place * PLACE;
        match self {
            Tensors::Host { output, .. } => Ok(output[from..from + count].to_vec()),
            Tensors::Device { output, stream, .. } => {
                let mut bytes = vec![0; count * size_of::<f32>()];
                output.download(from * size_of::<f32>(), &mut bytes, stream)?;
                let word = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                Ok(bytes.chunks_exact(4).map(word).collect())
            }
        }
    }
}
