//! A capture: operations in the order in which they were called, which is one of the orders that
//! their dependencies allow. Replay keeps to it.

use std::sync::Mutex;

use crossover_device::error::DeviceError;

use super::stream::Op;
use super::{failed, lock};

#[derive(Default)]
pub(super) struct Recording {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ops: Vec<Op>,
    invalid: bool,
}

impl Recording {
    pub(super) fn push(&self, op: Op) -> Result<(), DeviceError> {
        let mut state = lock(&self.state);
        if state.invalid {
            return Err(failed("capture", 901, "the capture was invalidated"));
        }
        state.ops.push(op);
        Ok(())
    }

    /// Something was asked for that a capture does not allow: it ends here.
    pub(super) fn invalidate(&self, call: &'static str) -> DeviceError {
        lock(&self.state).invalid = true;
        failed(call, 900, "it is not allowed while the stream is being captured")
    }

    pub(super) fn is_invalid(&self) -> bool {
        lock(&self.state).invalid
    }

    pub(super) fn finish(&self) -> Result<Vec<Op>, DeviceError> {
        let mut state = lock(&self.state);
        match state.invalid {
            true => Err(failed("end_capture", 901, "the capture was invalidated")),
            false => Ok(std::mem::take(&mut state.ops)),
        }
    }
}
