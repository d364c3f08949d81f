//! A device that is open.

use std::fmt;
use std::sync::Arc;

use crate::driver::{Capture, Description, Driver, Handle, Provenance};
use crate::error::DeviceError;

/// A device with its primary context, which it shares with the engine. A clone is the same device;
/// the context is given back when the last clone and all that is owned on it are gone.
///
/// A method of anything owned on a device makes the device's context current on the calling thread,
/// as `cudaSetDevice` does, and leaves it so.
#[derive(Clone)]
pub struct Device {
    open: Arc<Open>,
}

struct Open {
    driver: Arc<dyn Driver>,
    context: Handle,
    description: Description,
    vendor: String,
}

impl Device {
    /// Opens a driver's device: that of an ordinal, or else the one that is current on this thread,
    /// or else the first.
    ///
    /// `vendor` is what the driver is called in names of devices.
    ///
    /// # Errors
    /// There is no such device, or a call fails.
    pub fn open(
        driver: Arc<dyn Driver>,
        vendor: &str,
        ordinal: Option<u32>,
    ) -> Result<Device, DeviceError> {
        let ordinal = match ordinal {
            Some(ordinal) => ordinal,
            None => driver.current()?.unwrap_or(0),
        };
        let devices = driver.devices()?;
        let count = devices.len();
        let Some(description) = devices.into_iter().find(|device| device.ordinal == ordinal) else {
            return Err(DeviceError::Invalid(format!(
                "there is no device {vendor}:{ordinal}: this process sees {count}"
            )));
        };
        let context = driver.retain(ordinal)?;
        let open = Open { driver, context, description, vendor: vendor.into() };
        Ok(Device { open: Arc::new(open) })
    }

    /// Its driver, for calls that nothing here wraps.
    pub fn driver(&self) -> &dyn Driver {
        &*self.open.driver
    }

    /// What it is.
    pub fn description(&self) -> &Description {
        &self.open.description
    }

    /// Its number among those that this process sees.
    pub fn ordinal(&self) -> u32 {
        self.open.description.ordinal
    }

    /// Makes its context current on this thread; cheap where it is already.
    ///
    /// # Errors
    /// The call fails.
    #[inline]
    pub fn make_current(&self) -> Result<(), DeviceError> {
        self.open.driver.make_current(self.open.context)
    }

    /// Waits for all work of its context.
    ///
    /// # Errors
    /// The call fails, or a kernel did.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.make_current()?;
        self.driver().synchronize()
    }

    /// Is a stream, the engine's perhaps, being recorded into a graph? Does not disturb the
    /// recording.
    ///
    /// # Errors
    /// The call fails: for the default stream it does while another stream is recorded.
    pub fn capture(&self, stream: u64) -> Result<Capture, DeviceError> {
        self.make_current()?;
        self.driver().capture(stream)
    }

    /// Where a device pointer comes from.
    ///
    /// # Errors
    /// It is no memory that the driver knows.
    pub fn provenance(&self, pointer: u64) -> Result<Provenance, DeviceError> {
        self.make_current()?;
        self.driver().provenance(pointer)
    }

    /// Copies in stream order, between any two of host and device.
    ///
    /// # Safety
    /// Both ranges are valid until the copy is done.
    ///
    /// # Errors
    /// The call fails.
    pub unsafe fn copy(
        &self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: u64,
    ) -> Result<(), DeviceError> {
        self.make_current()?;
        // SAFETY: the caller's promise.
        unsafe { self.driver().copy(to, from, bytes, stream) }
    }

    /// Sets 32-bit words in stream order.
    ///
    /// # Safety
    /// The range is valid until it is done.
    ///
    /// # Errors
    /// The call fails.
    pub unsafe fn fill(
        &self,
        to: u64,
        word: u32,
        words: usize,
        stream: u64,
    ) -> Result<(), DeviceError> {
        self.make_current()?;
        // SAFETY: the caller's promise.
        unsafe { self.driver().fill(to, word, words, stream) }
    }

    /// Lets its kernels reach another device's memory in this process.
    ///
    /// # Errors
    /// The driver says that it cannot be reached, or a call fails.
    pub fn enable_peer(&self, peer: &Device) -> Result<(), DeviceError> {
        if !self.driver().can_access(self.ordinal(), peer.ordinal())? {
            return Err(DeviceError::Invalid(format!("{self} cannot reach the memory of {peer}")));
        }
        self.make_current()?;
        self.driver().enable_peer(peer.ordinal())
    }

    /// For what cannot return an error: makes the context current, calls, and says what failed.
    pub(crate) fn give_back(
        &self,
        what: &str,
        call: impl FnOnce(&dyn Driver) -> Result<(), DeviceError>,
    ) {
        if let Err(why) = self.make_current().and_then(|()| call(self.driver())) {
            tracing::warn!(device = %self, "{what} could not be given back: {why}");
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Err(why) = self.driver.release(self.description.ordinal) {
            let (vendor, ordinal) = (&self.vendor, self.description.ordinal);
            tracing::warn!("the context of {vendor}:{ordinal} could not be given back: {why}");
        }
    }
}

impl fmt::Display for Device {
    /// Its name, as [`open`](crate::open) takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.open.vendor, self.ordinal())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.to_string()).field(self.description()).finish()
    }
}
