//! Streams and events.

use std::ffi::c_uint;
use std::ptr::null_mut;

use crossover_hip_sys::layout::{NOT_READY, STREAM_NON_BLOCKING};

use crate::driver::Handle;
use crate::error::DeviceError;
use crate::hip::api::{Api, number, pointer};

const NO_FLAGS: c_uint = 0;

pub(super) fn create(api: &Api) -> Result<Handle, DeviceError> {
    let mut stream = null_mut();
    // SAFETY: a place for one stream.
    let status =
        unsafe { (api.calls().stream_create_with_flags)(&raw mut stream, STREAM_NON_BLOCKING) };
    api.check("hipStreamCreateWithFlags", status)?;
    Ok(Handle(number(stream)))
}

pub(super) fn destroy(api: &Api, stream: Handle) -> Result<(), DeviceError> {
    // SAFETY: a stream that `create` gave.
    let status = unsafe { (api.calls().stream_destroy)(pointer(stream.0)) };
    api.check("hipStreamDestroy", status)
}

pub(super) fn synchronize(api: &Api, stream: u64) -> Result<(), DeviceError> {
    // SAFETY: the caller's stream.
    let status = unsafe { (api.calls().stream_synchronize)(pointer(stream)) };
    api.check("hipStreamSynchronize", status)
}

pub(super) fn is_done(api: &Api, stream: u64) -> Result<bool, DeviceError> {
    // SAFETY: the caller's stream.
    let status = unsafe { (api.calls().stream_query)(pointer(stream)) };
    match api.check("hipStreamQuery", status) {
        Ok(()) => Ok(true),
        Err(_) if status == NOT_READY => Ok(false),
        Err(why) => Err(why),
    }
}

pub(super) fn create_event(api: &Api) -> Result<Handle, DeviceError> {
    let mut event = null_mut();
    // SAFETY: a place for one event.
    let status = unsafe { (api.calls().event_create_with_flags)(&raw mut event, NO_FLAGS) };
    api.check("hipEventCreateWithFlags", status)?;
    Ok(Handle(number(event)))
}

pub(super) fn destroy_event(api: &Api, event: Handle) -> Result<(), DeviceError> {
    // SAFETY: an event that `create_event` gave.
    let status = unsafe { (api.calls().event_destroy)(pointer(event.0)) };
    api.check("hipEventDestroy", status)
}

pub(super) fn record(api: &Api, event: Handle, stream: u64) -> Result<(), DeviceError> {
    // SAFETY: an event that `create_event` gave, and the caller's stream.
    let status = unsafe { (api.calls().event_record)(pointer(event.0), pointer(stream)) };
    api.check("hipEventRecord", status)
}

pub(super) fn wait(api: &Api, stream: u64, event: Handle) -> Result<(), DeviceError> {
    let (stream, event) = (pointer(stream), pointer(event.0));
    // SAFETY: as above.
    let status = unsafe { (api.calls().stream_wait_event)(stream, event, NO_FLAGS) };
    api.check("hipStreamWaitEvent", status)
}

pub(super) fn elapsed(api: &Api, from: Handle, to: Handle) -> Result<f32, DeviceError> {
    let mut milliseconds = 0.0;
    let (from, to) = (pointer(from.0), pointer(to.0));
    // SAFETY: a place for one number, and events that `create_event` gave.
    let status = unsafe { (api.calls().event_elapsed_time)(&raw mut milliseconds, from, to) };
    api.check("hipEventElapsedTime", status)?;
    Ok(milliseconds)
}
