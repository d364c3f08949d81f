//! Memory of the measurements.

/// Where a buffer starts in its page. Processors take a load for one that waits for an earlier store
/// where the low twelve bits of both addresses agree. So that no contender is lucky or unlucky with its
/// own memory, which tends to start at a page, the buffers start apart from it and from one another.
const PLACES: [usize; 3] = [576, 1664, 2752];
const PAGE: usize = 4096;

/// Bytes at one of the places in a page, touched, so that no page is missing when time is taken.
pub(crate) struct Memory {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Memory {
    /// `len` bytes, at place 0, 1 or 2.
    pub(crate) fn new(len: usize, place: usize) -> Memory {
        let memory = vec![1; len + 2 * PAGE];
        let start = memory.as_ptr().align_offset(PAGE) + PLACES[place];
        Memory { memory, start, len }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn start(&mut self) -> *mut u8 {
        self.bytes().as_mut_ptr()
    }
}
