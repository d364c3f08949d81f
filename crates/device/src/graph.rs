//! Recorded work.

use crate::device::Device;
use crate::driver::Handle;
use crate::error::DeviceError;
#[cfg(doc)]
use crate::stream::Stream;

/// Work that [`Stream::capture`] recorded. What it works on has to live as long as it is replayed.
#[derive(Debug)]
pub struct Graph {
    device: Device,
    handle: Handle,
}

impl Graph {
    pub(crate) fn new(device: &Device, handle: Handle) -> Graph {
        Graph { device: device.clone(), handle }
    }

    /// Does it in a stream, the engine's perhaps.
    ///
    /// # Errors
    /// The call fails.
    pub fn replay(&self, stream: u64) -> Result<(), DeviceError> {
        self.device.make_current()?;
        self.device.driver().replay(self.handle, stream)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let handle = self.handle;
        self.device.give_back("a graph", |driver| driver.destroy_graph(handle));
    }
}
