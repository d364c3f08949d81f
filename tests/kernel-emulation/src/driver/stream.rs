//! A stream: a thread that works off operations in order.

use std::collections::VecDeque;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossover_device::error::DeviceError;

use super::capture::Recording;
use super::event::Event;
use super::{failed, host, lock};
use crate::runtime::{Kernel, Launch, Queue, Runtime};

/// A kernel and the image that it is in.
#[derive(Clone)]
pub(super) struct Function {
    pub(super) runtime: Arc<Runtime>,
    pub(super) kernel: &'static Kernel,
}

/// What a stream does. A graph does it again and again.
#[derive(Clone)]
pub(super) enum Op {
    Call {
        function: host::Function,
        argument: u64,
    },
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Fill {
        to: u64,
        word: u32,
        words: usize,
    },
    Launch {
        function: Function,
        blocks: u32,
        threads: u32,
        programmatic: bool,
        parameter: Arc<[u8]>,
    },
    Record {
        event: Arc<Event>,
        number: u64,
    },
    Replay(Arc<[Op]>),
    Wait {
        event: Arc<Event>,
        number: u64,
    },
}

pub(super) struct Stream {
    pub(super) ordinal: u32,
    state: Mutex<State>,
    changed: Condvar,
    delay_us: AtomicU32,
}

#[derive(Default)]
struct State {
    ops: VecDeque<Op>,
    busy: bool,
    stop: bool,
    /// A kernel hung: nothing after it is done.
    error: Option<String>,
    recording: Option<Arc<Recording>>,
}

impl Stream {
    pub(super) fn start(ordinal: u32, number: u64, seed: u64, hang: Duration) -> Arc<Stream> {
        let stream = Arc::new(Stream {
            ordinal,
            state: Mutex::default(),
            changed: Condvar::new(),
            delay_us: AtomicU32::new(0),
        });
        let who = format!("device {ordinal} stream {number}");
        let worker = Worker {
            stream: Arc::clone(&stream),
            queue: None,
            who: CString::new(who).unwrap_or_default(),
            seed,
            launches: 0,
            hang_ms: u32::try_from(hang.as_millis()).unwrap_or(u32::MAX),
        };
        thread::spawn(move || worker.run());
        stream
    }

    /// What is in it is still done.
    pub(super) fn stop(&self) {
        lock(&self.state).stop = true;
        self.changed.notify_all();
    }

    pub(super) fn delay(&self, longest: Duration) {
        let longest = u32::try_from(longest.as_micros()).unwrap_or(u32::MAX);
        self.delay_us.store(longest, Ordering::Relaxed);
    }

    pub(super) fn push(&self, op: Op) -> Result<(), DeviceError> {
        let mut state = lock(&self.state);
        if let Some(recording) = &state.recording {
            return recording.push(op);
        }
        healthy(&state)?;
        state.ops.push_back(op);
        self.changed.notify_all();
        Ok(())
    }

    pub(super) fn synchronize(&self) -> Result<(), DeviceError> {
        let state = lock(&self.state);
        if let Some(recording) = &state.recording {
            return Err(recording.invalidate("synchronize_stream"));
        }
        let state = self
            .changed
            .wait_while(state, |state| state.busy || !state.ops.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        healthy(&state)
    }

    pub(super) fn is_done(&self) -> Result<bool, DeviceError> {
        let state = lock(&self.state);
        if let Some(recording) = &state.recording {
            return Err(recording.invalidate("is_done"));
        }
        healthy(&state)?;
        Ok(!state.busy && state.ops.is_empty())
    }

    pub(super) fn recording(&self) -> Option<Arc<Recording>> {
        lock(&self.state).recording.clone()
    }

    /// From here on operations go there, until [`Stream::leave`].
    pub(super) fn join(&self, recording: &Arc<Recording>) {
        lock(&self.state).recording = Some(Arc::clone(recording));
    }

    pub(super) fn leave(&self, recording: &Arc<Recording>) {
        let mut state = lock(&self.state);
        if state.recording.as_ref().is_some_and(|ours| Arc::ptr_eq(ours, recording)) {
            state.recording = None;
        }
    }
}

fn healthy(state: &State) -> Result<(), DeviceError> {
    match &state.error {
        Some(error) => Err(failed("launch", 702, error.clone())),
        None => Ok(()),
    }
}

/// The stream's thread.
struct Worker {
    stream: Arc<Stream>,
    /// Kernels of one image may overlap; those of another wait for them.
    queue: Option<(Arc<Runtime>, Queue)>,
    who: CString,
    seed: u64,
    launches: u64,
    hang_ms: u32,
}

impl Worker {
    fn run(mut self) {
        while let Some(op) = self.next() {
            self.perform(&op);
        }
    }

    /// The next operation; before it waits for one, all kernels have ended.
    fn next(&mut self) -> Option<Op> {
        let stream = Arc::clone(&self.stream);
        let mut state = lock(&stream.state);
        loop {
            if let Some(op) = state.ops.pop_front() {
                state.busy = true;
                return Some(op);
            }
            if state.busy {
                drop(state);
                self.drain();
                state = lock(&stream.state);
                // Something may have come meanwhile.
                if state.ops.is_empty() {
                    state.busy = false;
                    stream.changed.notify_all();
                }
                continue;
            }
            if state.stop {
                return None;
            }
            state = stream.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn perform(&mut self, op: &Op) {
        if !matches!(op, Op::Launch { .. } | Op::Replay(_)) {
            self.drain();
        }
        let failed = lock(&self.stream.state).error.is_some();
        match op {
            // Others may wait for it.
            Op::Record { event, number } => event.complete(*number),
            _ if failed => {}
            // SAFETY: whoever enqueued it promised that it can be called until it is done.
            Op::Call { function, argument } => unsafe { function(*argument as *mut c_void) },
            // SAFETY: whoever enqueued it promised that both ranges are valid until it is done.
            Op::Copy { to, from, bytes } => unsafe {
                ptr::copy(*from as *const u8, *to as *mut u8, *bytes);
            },
            // SAFETY: as above.
            Op::Fill { to, word, words } => unsafe {
                for at in 0..*words {
                    (*to as *mut u32).add(at).write_unaligned(*word);
                }
            },
            Op::Launch { function, blocks, threads, programmatic, parameter } => {
                self.launches += 1;
                let launch = Launch {
                    kernel: function.kernel,
                    parameter,
                    who: &self.who.clone(),
                    seed: self.seed.wrapping_add(self.launches),
                    blocks: *blocks,
                    threads: *threads,
                    programmatic: *programmatic,
                    delay_us: self.stream.delay_us.load(Ordering::Relaxed),
                    hang_ms: self.hang_ms,
                };
                let queue = self.queue_of(&function.runtime);
                // SAFETY: whoever enqueued it promised what the parameter points at.
                let outcome = unsafe { queue.launch(&launch) };
                self.told(outcome);
            }
            Op::Replay(ops) => ops.iter().for_each(|op| self.perform(op)),
            Op::Wait { event, number } => event.await_record(*number),
        }
    }

    fn queue_of(&mut self, runtime: &Arc<Runtime>) -> &mut Queue {
        if !self.queue.as_ref().is_some_and(|(of, _)| Arc::ptr_eq(of, runtime)) {
            self.drain();
            self.queue = None;
        }
        let (_, queue) = self
            .queue
            .get_or_insert_with(|| (Arc::clone(runtime), Queue::new(Arc::clone(runtime))));
        queue
    }

    fn drain(&mut self) {
        if let Some((_, queue)) = &mut self.queue {
            let outcome = queue.drain();
            self.told(outcome);
        }
    }

    fn told(&self, outcome: Result<(), String>) {
        if let Err(error) = outcome {
            lock(&self.stream.state).error.get_or_insert(error);
        }
    }
}
