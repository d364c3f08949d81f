//! Recording a stream into a graph, and staying out of others' recordings.

use std::ffi::c_uint;

use cudarc::driver::sys::CUstreamCaptureMode as Mode;

use crate::cuda::api::Api;
use crate::cuda::{number, pointer};
use crate::driver::{Capture, Handle};
use crate::error::DeviceError;

/// While it lives, this thread's calls are not taken as part of any recording.
pub(super) struct Relaxed<'a> {
    api: &'a Api,
    before: c_uint,
}

impl Relaxed<'_> {
    pub(super) fn enter(api: &Api) -> Result<Relaxed<'_>, DeviceError> {
        let mut mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED as c_uint;
        // SAFETY: the mode is a C enum, exchanged for the one that held.
        unsafe { api.cuThreadExchangeStreamCaptureMode((&raw mut mode).cast()) }?;
        Ok(Relaxed { api, before: mode })
    }
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        // SAFETY: as above. It failed on the way in if it ever does.
        let _ =
            unsafe { self.api.cuThreadExchangeStreamCaptureMode((&raw mut self.before).cast()) };
    }
}

pub(super) fn state(api: &Api, stream: u64) -> Result<Capture, DeviceError> {
    let mut status: c_uint = 0;
    // SAFETY: the status is a C enum; its place is an integer, so that any value may come.
    unsafe { api.cuStreamIsCapturing(pointer(stream), (&raw mut status).cast()) }?;
    match status {
        0 => Ok(Capture::None),
        1 => Ok(Capture::Active),
        _ => Ok(Capture::Invalidated),
    }
}

pub(super) fn begin(api: &Api, stream: u64) -> Result<(), DeviceError> {
    let mode = Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: the caller's stream.
    unsafe { api.cuStreamBeginCapture_v2(pointer(stream), mode) }
}

pub(super) fn end(api: &Api, stream: u64) -> Result<Handle, DeviceError> {
    let mut graph = std::ptr::null_mut();
    // SAFETY: a place for one graph.
    unsafe { api.cuStreamEndCapture(pointer(stream), &mut graph) }?;
    if graph.is_null() {
        return Err(DeviceError::Invalid(
            "the recording was given up: a call within it is not allowed in graphs".into(),
        ));
    }
    let mut executable = std::ptr::null_mut();
    // SAFETY: the graph that was just recorded, destroyed once: the executable one is a copy.
    unsafe {
        let made = api.cuGraphInstantiateWithFlags(&mut executable, graph, 0);
        let destroyed = api.cuGraphDestroy(graph);
        made.and(destroyed)?;
    }
    Ok(Handle(number(executable)))
}

pub(super) fn replay(api: &Api, graph: Handle, stream: u64) -> Result<(), DeviceError> {
    // SAFETY: a graph that `end` gave.
    unsafe { api.cuGraphLaunch(pointer(graph.0), pointer(stream)) }
}

pub(super) fn destroy(api: &Api, graph: Handle) -> Result<(), DeviceError> {
    // SAFETY: a graph that `end` gave.
    unsafe { api.cuGraphExecDestroy(pointer(graph.0)) }
}
