//! Events: a count of records, and how many of them have come true.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use crossover_device::error::DeviceError;

use super::capture::Recording;
use super::{failed, lock};

#[derive(Default)]
pub(super) struct Event {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    recorded: u64,
    done: u64,
    at: Option<Instant>,
    /// The capture that it was last recorded in, if it was.
    recording: Option<Arc<Recording>>,
}

impl Event {
    /// A record was put into a stream; its number is for [`Event::complete`].
    pub(super) fn record(&self) -> u64 {
        let mut state = lock(&self.state);
        state.recording = None;
        state.recorded += 1;
        state.recorded
    }

    /// It was recorded in a capture, where it only says what comes after what.
    pub(super) fn capture(&self, recording: &Arc<Recording>) {
        lock(&self.state).recording = Some(Arc::clone(recording));
    }

    pub(super) fn recording(&self) -> Option<Arc<Recording>> {
        lock(&self.state).recording.clone()
    }

    /// The last record, for [`Event::await_record`].
    pub(super) fn last(&self) -> u64 {
        lock(&self.state).recorded
    }

    pub(super) fn complete(&self, number: u64) {
        let mut state = lock(&self.state);
        if number > state.done {
            state.done = number;
            state.at = Some(Instant::now());
        }
        self.changed.notify_all();
    }

    pub(super) fn await_record(&self, number: u64) {
        let state = lock(&self.state);
        let waited = self.changed.wait_while(state, |state| state.done < number);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn time(&self) -> Result<Instant, DeviceError> {
        let state = lock(&self.state);
        match state.at {
            Some(at) if state.done == state.recorded => Ok(at),
            Some(_) => Err(failed("elapsed", 600, "an event is not complete")),
            None => Err(failed("elapsed", 400, "an event was never recorded")),
        }
    }
}
