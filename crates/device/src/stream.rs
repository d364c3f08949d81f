//! Streams and events that are owned. An engine's own streams come as raw numbers and are only
//! used.

use crate::device::Device;
use crate::driver::Handle;
use crate::error::DeviceError;
use crate::graph::Graph;

/// A stream that does not wait for the default stream. Its work completes after it is dropped.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    handle: Handle,
}

impl Stream {
    /// Creates it.
    ///
    /// # Errors
    /// The call fails.
    pub fn new(device: &Device) -> Result<Stream, DeviceError> {
        device.make_current()?;
        let handle = device.driver().create_stream()?;
        Ok(Stream { device: device.clone(), handle })
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// As drivers and engines name it.
    pub fn raw(&self) -> u64 {
        self.handle.0
    }

    /// Waits for its work.
    ///
    /// # Errors
    /// The call fails, or a kernel did.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.device.make_current()?;
        self.device.driver().synchronize_stream(self.raw())
    }

    /// Is all its work done? Never waits.
    ///
    /// # Errors
    /// The call fails, or a kernel did.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.device.make_current()?;
        self.device.driver().is_done(self.raw())
    }

    /// Lets its later work wait for an event.
    ///
    /// # Errors
    /// The call fails.
    pub fn wait(&self, event: &Event) -> Result<(), DeviceError> {
        self.device.make_current()?;
        self.device.driver().wait(self.raw(), event.handle)
    }

    /// Records what `work` puts into it as a graph, instead of doing it. Whatever `work` does, the
    /// stream is not being recorded afterwards.
    ///
    /// # Errors
    /// What `work` returns; or a call within it is not allowed in graphs.
    pub fn capture<E: From<DeviceError>>(
        &self,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<Graph, E> {
        self.device.make_current()?;
        self.device.driver().begin_capture(self.raw())?;
        let recording = Recording { stream: self };
        let done = work();
        let graph = recording.end();
        done?;
        Ok(graph?)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let handle = self.handle;
        self.device.give_back("a stream", |driver| driver.destroy_stream(handle));
    }
}

/// Ends a recording even if what is recorded panics.
struct Recording<'a> {
    stream: &'a Stream,
}

impl Recording<'_> {
    fn end(self) -> Result<Graph, DeviceError> {
        let graph = self.end_once();
        std::mem::forget(self);
        graph
    }

    fn end_once(&self) -> Result<Graph, DeviceError> {
        let Stream { device, handle } = self.stream;
        device.make_current()?;
        Ok(Graph::new(device, device.driver().end_capture(handle.0)?))
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        // A panic is on its way, which tells more than how the recording ended.
        drop(self.end_once());
    }
}

/// An event that takes times.
#[derive(Debug)]
pub struct Event {
    device: Device,
    handle: Handle,
}

impl Event {
    /// Creates it.
    ///
    /// # Errors
    /// The call fails.
    pub fn new(device: &Device) -> Result<Event, DeviceError> {
        device.make_current()?;
        let handle = device.driver().create_event()?;
        Ok(Event { device: device.clone(), handle })
    }

    /// As drivers name it.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Records it in a stream, the engine's perhaps.
    ///
    /// # Errors
    /// The call fails.
    pub fn record(&self, stream: u64) -> Result<(), DeviceError> {
        self.device.make_current()?;
        self.device.driver().record(self.handle, stream)
    }

    /// Milliseconds from an earlier event. Both have been recorded, and their streams have come
    /// that far.
    ///
    /// # Errors
    /// One of them was not recorded, or its stream has not come that far.
    pub fn since(&self, earlier: &Event) -> Result<f32, DeviceError> {
        self.device.make_current()?;
        self.device.driver().elapsed(earlier.handle, self.handle)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let handle = self.handle;
        self.device.give_back("an event", |driver| driver.destroy_event(handle));
    }
}
