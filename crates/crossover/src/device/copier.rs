//! A group of one on a device.

use crossover_core::backend::EnqueueError;
use crossover_core::call::CallBuffers;
use crossover_core::communicator::Copier;
use crossover_device::device::Device;
use crossover_device::error::DeviceError;

/// Copies by the driver, in stream order.
pub(crate) struct DeviceCopier(pub(crate) Device);

impl Copier for DeviceCopier {
    unsafe fn copy(&self, seq: u64, buffers: &CallBuffers, bytes: u64) -> Result<(), EnqueueError> {
        let (from, to) = (buffers.input as u64, buffers.output as u64);
        if bytes == 0 || from == to {
            return Ok(());
        }
        // SAFETY: the caller vouches for both ranges until the stream has done the copy.
        let copied = unsafe { self.0.copy(to, from, bytes as usize, buffers.stream) };
        copied.map_err(|e| {
            let (call, text) = match e {
                DeviceError::Call { call, code, text } => (call, format!("{text} ({code})")),
                other => ("the copy", other.to_string()),
            };
            EnqueueError::Vendor { step: "copy".to_owned(), seq, call, text }
        })
    }
}
