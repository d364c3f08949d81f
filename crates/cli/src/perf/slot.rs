//! The buffers of one call, out of place or in place.

use crossover_core::call::CallBuffers;
use crossover_core::communicator::{CallError, Communicator};

use super::buffer::Buffer;
use super::case::Case;
use super::data;
use crate::failure::Failure;

/// Whether input and output share memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Placement {
    OutOfPlace,
    InPlace,
}

/// Memory of one call, and which data is in it.
pub(super) struct Slot {
    case: Case,
    /// The number of the call whose data it holds.
    call: u64,
    /// The input; in place, the output as well.
    first: Buffer,
    /// The output, out of place.
    second: Option<Buffer>,
}

impl Slot {
    pub(super) fn new(case: &Case, placement: Placement) -> Result<Slot, Failure> {
        let size = case.dtype.size();
        let (first, second) = match placement {
            Placement::OutOfPlace => {
                (Buffer::new(case.input * size)?, Some(Buffer::new(case.output * size)?))
            }
            Placement::InPlace => (Buffer::new(case.input.max(case.output) * size)?, None),
        };
        Ok(Slot { case: *case, call: 0, first, second })
    }

    /// Takes the data of a call: poisons the output, then writes the input.
    pub(super) fn load(&mut self, call: u64) {
        self.call = call;
        let case = self.case;
        data::poison(&case, call, self.output_mut());
        data::write_input(&case, call, self.input_mut());
    }

    /// Makes the call on this rank.
    pub(super) fn run(&mut self, group: &Communicator) -> Result<(), CallError> {
        let call = self.case.signature(group.plan().contract());
        let input = self.input_mut().as_ptr();
        let output = self.output_mut().as_mut_ptr();
        let buffers = CallBuffers { input, output, stream: 0 };
        // SAFETY: both point into this slot's buffers, which hold what the case says, and live
        // until the call is complete, which it is on return since the group is on host memory. In
        // place, they overlap as `CallBuffers` allows.
        unsafe { group.run(&call, &buffers) }
    }

    /// Elements of the output that are wrong, after a call.
    pub(super) fn count_wrong(&mut self) -> u64 {
        self.count_wrong_of(self.call)
    }

    /// The same, for an output that was brought here from elsewhere.
    pub(super) fn count_wrong_of(&mut self, call: u64) -> u64 {
        let case = self.case;
        data::count_wrong(&case, call, self.output_mut())
    }

    /// All bytes of the buffers: the input and, out of place, the output.
    pub(super) fn memories_mut(&mut self) -> (&mut [u8], Option<&mut [u8]>) {
        (self.first.bytes_mut(), self.second.as_mut().map(Buffer::bytes_mut))
    }

    fn input_mut(&mut self) -> &mut [u8] {
        let Case { input, .. } = self.case;
        let start = if self.second.is_none() { self.case.input_in_place() } else { 0 };
        let size = self.case.dtype.size();
        &mut self.first.bytes_mut()[start * size..(start + input) * size]
    }

    fn output_mut(&mut self) -> &mut [u8] {
        let Case { output, .. } = self.case;
        let start = if self.second.is_none() { self.case.output_in_place() } else { 0 };
        let size = self.case.dtype.size();
        let buffer = self.second.as_mut().unwrap_or(&mut self.first);
        &mut buffer.bytes_mut()[start * size..(start + output) * size]
    }
}
