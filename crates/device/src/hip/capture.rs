//! Recording a stream into a graph, and staying out of others' recordings.

use std::ffi::c_int;
use std::ptr::null_mut;

use crossover_hip_sys::layout::{
    CAPTURE_ACTIVE, CAPTURE_NONE, CAPTURE_RELAXED, CAPTURE_THREAD_LOCAL,
};

use crate::driver::{Capture, Handle};
use crate::error::DeviceError;
use crate::hip::api::{Api, number, pointer};

/// While it lives, this thread's calls are not taken as part of any recording: HIP refuses
/// allocations, for instance, while another thread records.
pub(super) struct Relaxed<'a> {
    api: &'a Api,
    before: c_int,
}

impl Relaxed<'_> {
    pub(super) fn enter(api: &Api) -> Result<Relaxed<'_>, DeviceError> {
        let mut mode = CAPTURE_RELAXED;
        // SAFETY: the mode is exchanged for the one that held.
        let status = unsafe { (api.calls().thread_exchange_stream_capture_mode)(&raw mut mode) };
        api.check("hipThreadExchangeStreamCaptureMode", status)?;
        Ok(Relaxed { api, before: mode })
    }
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        // SAFETY: as above. It failed on the way in if it ever does.
        unsafe { (self.api.calls().thread_exchange_stream_capture_mode)(&raw mut self.before) };
    }
}

pub(super) fn state(api: &Api, stream: u64) -> Result<Capture, DeviceError> {
    let mut state = CAPTURE_NONE;
    // SAFETY: a place for one number.
    let status = unsafe { (api.calls().stream_is_capturing)(pointer(stream), &raw mut state) };
    api.check("hipStreamIsCapturing", status)?;
    match state {
        CAPTURE_NONE => Ok(Capture::None),
        CAPTURE_ACTIVE => Ok(Capture::Active),
        _ => Ok(Capture::Invalidated),
    }
}

pub(super) fn begin(api: &Api, stream: u64) -> Result<(), DeviceError> {
    // SAFETY: the caller's stream.
    let status =
        unsafe { (api.calls().stream_begin_capture)(pointer(stream), CAPTURE_THREAD_LOCAL) };
    api.check("hipStreamBeginCapture", status)
}

pub(super) fn end(api: &Api, stream: u64) -> Result<Handle, DeviceError> {
    let calls = api.calls();
    let mut graph = null_mut();
    // SAFETY: a place for one graph.
    let status = unsafe { (calls.stream_end_capture)(pointer(stream), &raw mut graph) };
    api.check("hipStreamEndCapture", status)?;
    if graph.is_null() {
        return Err(DeviceError::Invalid(
            "the recording was given up: a call within it is not allowed in graphs".into(),
        ));
    }
    let mut executable = null_mut();
    // SAFETY: the graph that was just recorded, destroyed once: the executable one is a copy. No
    // place for a log is given.
    let (made, destroyed) = unsafe {
        let made = (calls.graph_instantiate)(&raw mut executable, graph, null_mut(), null_mut(), 0);
        (made, (calls.graph_destroy)(graph))
    };
    api.check("hipGraphInstantiate", made)?;
    api.check("hipGraphDestroy", destroyed)?;
    Ok(Handle(number(executable)))
}

pub(super) fn replay(api: &Api, graph: Handle, stream: u64) -> Result<(), DeviceError> {
    // SAFETY: a graph that `end` gave.
    let status = unsafe { (api.calls().graph_launch)(pointer(graph.0), pointer(stream)) };
    api.check("hipGraphLaunch", status)
}

pub(super) fn destroy(api: &Api, graph: Handle) -> Result<(), DeviceError> {
    // SAFETY: a graph that `end` gave.
    let status = unsafe { (api.calls().graph_exec_destroy)(pointer(graph.0)) };
    api.check("hipGraphExecDestroy", status)
}
