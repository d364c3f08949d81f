//! Memory that tensors are placed in. It is taken once: a driver's own allocating and freeing may
//! wait for kernels, and those for ranks that are not there yet.

use std::cell::Cell;

use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::memory::Buffer;

/// A buffer that is handed out piece by piece.
pub struct Room {
    buffer: Buffer,
    used: Cell<usize>,
}

impl Room {
    /// Memory that others map by its handle.
    ///
    /// # Errors
    ///
    /// The memory is not there.
    pub fn new(device: &Device, bytes: usize) -> Result<Room, DeviceError> {
        Ok(Room { buffer: Buffer::new(device, bytes)?, used: Cell::new(0) })
    }

    /// Memory that others map by a descriptor.
    ///
    /// # Errors
    ///
    /// The memory is not there.
    pub fn new_virtual(device: &Device, bytes: usize) -> Result<Room, DeviceError> {
        Ok(Room { buffer: Buffer::new_virtual(device, bytes)?, used: Cell::new(0) })
    }

    /// The address of so many bytes, a multiple of 256.
    ///
    /// # Panics
    ///
    /// If there are not so many left.
    pub fn take(&self, bytes: usize) -> u64 {
        let at = self.used.get();
        let end = (at + bytes).next_multiple_of(256);
        assert!(end <= self.buffer.bytes(), "a test wants {end} B of {}", self.buffer.bytes());
        self.used.set(end);
        self.buffer.address() + at as u64
    }

    /// Everything is free again.
    pub fn clear(&self) {
        self.used.set(0);
    }
}
