//! Memory of a call.

use crate::failure::Failure;

/// Where engines' tensors start, or better.
const ALIGNMENT: usize = 256;

/// Bytes that start at a multiple of [`ALIGNMENT`], so that no measurement depends on where the
/// allocator happens to put them.
pub(super) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    pub(super) fn new(len: usize) -> Result<Buffer, Failure> {
        let too_large = || Failure::usage(format!("there is no memory for a buffer of {len} B"));
        let with_margin = len.checked_add(ALIGNMENT).ok_or_else(too_large)?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(with_margin).map_err(|_| too_large())?;
        memory.resize(with_margin, 0);
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Ok(Buffer { memory, start, len })
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}
