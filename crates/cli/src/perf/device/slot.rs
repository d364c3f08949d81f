//! The buffers of calls on a device, and the host's copy through which they are filled and checked.

use crossover_core::call::{CallBuffers, CallSig};
use crossover_core::communicator::{CallError, Communicator};
use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::memory::Buffer;
use crossover_device::stream::Stream;

use crate::failure::Failure;
use crate::perf::case::Case;
use crate::perf::slot::{Placement, Slot};

/// An allocation has at least so many bytes: a call of none has buffers too.
const LEAST: usize = 256;

/// Device memory for one call of any case.
pub(super) struct Memory {
    /// The input; in place, the output as well.
    first: Buffer,
    /// The output, out of place.
    second: Buffer,
}

impl Memory {
    /// For calls of up to so many bytes in the larger of input and output.
    pub(super) fn new(device: &Device, bytes: usize) -> Result<Memory, DeviceError> {
        let bytes = bytes.max(LEAST);
        Ok(Memory { first: Buffer::new(device, bytes)?, second: Buffer::new(device, bytes)? })
    }
}

/// Calls of one case in one placement, each with memory of its own.
pub(super) struct Slots<'m> {
    case: Case,
    placement: Placement,
    memory: &'m [Memory],
    stream: &'m Stream,
    /// The number of the call whose data each holds.
    calls: Vec<u64>,
    staging: Slot,
}

impl<'m> Slots<'m> {
    pub(super) fn new(
        case: &Case,
        placement: Placement,
        memory: &'m [Memory],
        stream: &'m Stream,
    ) -> Result<Slots<'m>, Failure> {
        let staging = Slot::new(case, placement)?;
        Ok(Slots { case: *case, placement, memory, stream, calls: vec![0; memory.len()], staging })
    }

    pub(super) fn len(&self) -> usize {
        self.memory.len()
    }

    pub(super) fn placement(&self) -> Placement {
        self.placement
    }

    /// Takes the data of a new call into each: outputs are poisoned, inputs written.
    pub(super) fn load(&mut self, calls: &mut u64) -> Result<(), DeviceError> {
        for (memory, call) in self.memory.iter().zip(&mut self.calls) {
            *calls += 1;
            *call = *calls;
            self.staging.load(*call);
            let (first, second) = self.staging.memories_mut();
            memory.first.upload(0, first, self.stream)?;
            if let Some(second) = second {
                memory.second.upload(0, second, self.stream)?;
            }
        }
        Ok(())
    }

    /// Puts the call of number `at`, in turn, into the stream.
    pub(super) fn run(
        &self,
        at: usize,
        group: &Communicator,
        call: &CallSig<'_>,
    ) -> Result<(), CallError> {
        let Memory { first, second } = &self.memory[at % self.memory.len()];
        let (first, second) = (first.address(), second.address());
        let size = self.case.dtype.size();
        let (input, output) = match self.placement {
            Placement::OutOfPlace => (first, second),
            Placement::InPlace => (
                first + (self.case.input_in_place() * size) as u64,
                first + (self.case.output_in_place() * size) as u64,
            ),
        };
        let (input, output) = (input as *const u8, output as *mut u8);
        let buffers = CallBuffers { input, output, stream: self.stream.raw() };
        // SAFETY: both point into device memory that holds what the case says and outlives the
        // stream's work: whoever runs calls waits for the stream before it lets go of the memory.
        // In place, they overlap as `CallBuffers` allows.
        unsafe { group.run(call, &buffers) }
    }

    /// Wrong elements in all outputs, once the stream's work is done.
    pub(super) fn count_wrong(&mut self) -> Result<u64, DeviceError> {
        let mut wrong = 0;
        for (memory, call) in self.memory.iter().zip(&self.calls) {
            match self.staging.memories_mut() {
                (_, Some(second)) => memory.second.download(0, second, self.stream)?,
                (first, None) => memory.first.download(0, first, self.stream)?,
            }
            wrong += self.staging.count_wrong_of(*call);
        }
        Ok(wrong)
    }
}
