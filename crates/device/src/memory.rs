//! Memory that is owned on a device, and pages of the host that a device reaches.

use crate::device::Device;
use crate::error::DeviceError;
use crate::sharing::Share;
use crate::stream::Stream;

/// An allocation on a device, freed when dropped. Nothing may use it then: who launches work on it
/// keeps it until that is done. The driver's own free may wait for the device's work.
#[derive(Debug)]
pub struct Buffer {
    device: Device,
    address: u64,
    bytes: usize,
    kind: Kind,
}

/// How it was allocated, and so how it is shared and freed.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Shared by handle.
    Plain,
    /// Shared as a descriptor.
    Virtual,
}

impl Buffer {
    /// Allocates memory that other processes map by its handle.
    ///
    /// # Errors
    /// The memory is not there, or no bytes were asked for.
    pub fn new(device: &Device, bytes: usize) -> Result<Buffer, DeviceError> {
        device.make_current()?;
        let address = device.driver().alloc(bytes)?;
        Ok(Buffer { device: device.clone(), address, bytes, kind: Kind::Plain })
    }

    /// Allocates virtual memory, which other processes map by its descriptor. It has more bytes
    /// than were asked for where the driver's unit is larger.
    ///
    /// # Errors
    /// The memory is not there, or the driver or a container does not allow it.
    pub fn new_virtual(device: &Device, bytes: usize) -> Result<Buffer, DeviceError> {
        device.make_current()?;
        let (address, bytes) = device.driver().alloc_virtual(device.ordinal(), bytes)?;
        Ok(Buffer { device: device.clone(), address, bytes, kind: Kind::Virtual })
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its first byte on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What another process needs to map it.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn share(&self) -> Result<Share, DeviceError> {
        self.device.make_current()?;
        let driver = self.device.driver();
        match self.kind {
            Kind::Plain => driver.export(self.address).map(Share::Handle),
            Kind::Virtual => driver.export_fd(self.address).map(Share::Descriptor),
        }
    }

    /// Writes bytes at an offset, in stream order, and waits until they are there.
    ///
    /// # Errors
    /// They do not fit, or a call fails.
    pub fn upload(&self, at: usize, bytes: &[u8], stream: &Stream) -> Result<(), DeviceError> {
        let to = self.place(at, bytes.len())?;
        // SAFETY: both ranges are valid, and it is waited for.
        unsafe { self.device.copy(to, bytes.as_ptr() as u64, bytes.len(), stream.raw()) }?;
        stream.synchronize()
    }

    /// Reads bytes from an offset, in stream order, and waits until they are here.
    ///
    /// # Errors
    /// There are fewer, or a call fails.
    pub fn download(
        &self,
        at: usize,
        bytes: &mut [u8],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let from = self.place(at, bytes.len())?;
        // SAFETY: both ranges are valid, and it is waited for.
        unsafe { self.device.copy(bytes.as_mut_ptr() as u64, from, bytes.len(), stream.raw()) }?;
        stream.synchronize()
    }

    /// Sets all its 32-bit words, in stream order, and waits until they are set. The bytes behind
    /// the last whole word stay as they are.
    ///
    /// # Errors
    /// The call fails.
    pub fn fill(&self, word: u32, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: the range is the buffer's, and it is waited for.
        unsafe { self.device.fill(self.address, word, self.bytes / 4, stream.raw()) }?;
        stream.synchronize()
    }

    fn place(&self, at: usize, bytes: usize) -> Result<u64, DeviceError> {
        match at.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address + at as u64),
            _ => Err(DeviceError::Invalid(format!(
                "{bytes} bytes from byte {at} are not within a buffer of {}",
                self.bytes
            ))),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Buffer { address, bytes, .. } = *self;
        let kind = self.kind;
        self.device.give_back("device memory", |driver| match kind {
            Kind::Plain => driver.free(address),
            Kind::Virtual => driver.free_virtual(address, bytes),
        });
    }
}

/// Pages of this process that a device reaches, while this lives. It does not own them.
#[derive(Debug)]
pub struct HostPages {
    device: Device,
    pages: *mut u8,
    bytes: usize,
    address: u64,
}

// SAFETY: the pointer is never read through here; registering is the driver's, which takes any
// thread.
unsafe impl Send for HostPages {}
// SAFETY: likewise.
unsafe impl Sync for HostPages {}

impl HostPages {
    /// Locks the pages and maps them for devices.
    ///
    /// # Safety
    /// They stay mapped in this process until this is dropped.
    ///
    /// # Errors
    /// They are not whole pages, are locked already, or too many would be.
    pub unsafe fn register(
        device: &Device,
        pages: *mut u8,
        bytes: usize,
    ) -> Result<HostPages, DeviceError> {
        device.make_current()?;
        // SAFETY: the caller's promise: they are unregistered when this is dropped.
        let address = unsafe { device.driver().register_host(pages, bytes) }?;
        Ok(HostPages { device: device.clone(), pages, bytes, address })
    }

    /// Where the process has them.
    pub fn pages(&self) -> *mut u8 {
        self.pages
    }

    /// Where the device has them.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        let pages = self.pages;
        self.device.give_back("locked pages", |driver| driver.unregister_host(pages));
    }
}
