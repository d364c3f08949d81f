//! What a group of one does: it copies. On host memory by itself, on a device by whom it is given.

use std::sync::Arc;

use crate::backend::EnqueueError;
use crate::call::CallBuffers;
use crate::facts::{GroupFacts, HOST_ARCH};

/// Copies device memory, for a group of one: no backend is set up for it, and the core calls no
/// vendor.
pub trait Copier: Send + Sync {
    /// Copies `bytes` from the input to the output in the order of the buffers' stream; equal
    /// pointers are legal, other overlaps do not happen. `seq` is the call's number, for messages.
    ///
    /// # Errors
    ///
    /// A vendor call failed.
    ///
    /// # Safety
    ///
    /// Both buffers hold as many bytes and are valid until the copy is done.
    unsafe fn copy(&self, seq: u64, buffers: &CallBuffers, bytes: u64) -> Result<(), EnqueueError>;
}

/// How a group of one copies.
pub(super) enum Copying {
    /// On host memory.
    Host,
    By(Arc<dyn Copier>),
    /// Its memory is on a device of this architecture, and nobody said how to copy it.
    Nobody(String),
}

impl Copying {
    pub(super) fn of(facts: &GroupFacts) -> Copying {
        match facts.profile().arch.as_str() {
            HOST_ARCH => Copying::Host,
            arch => Copying::Nobody(arch.to_owned()),
        }
    }

    /// # Safety
    ///
    /// As for [`Copier::copy`].
    pub(super) unsafe fn run(
        &self,
        seq: u64,
        buffers: &CallBuffers,
        bytes: u64,
    ) -> Result<(), EnqueueError> {
        match self {
            Copying::Host => {
                // SAFETY: the caller vouches for both; they may be the same.
                unsafe { std::ptr::copy(buffers.input, buffers.output, bytes as usize) };
                Ok(())
            }
            // SAFETY: the caller's promise is passed on as it is.
            Copying::By(copier) => unsafe { copier.copy(seq, buffers, bytes) },
            Copying::Nobody(arch) => Err(EnqueueError::NoCopier { seq, arch: arch.clone() }),
        }
    }
}
