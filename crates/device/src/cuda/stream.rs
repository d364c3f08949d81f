//! Streams and events.

use std::ffi::c_int;

use cudarc::driver::sys::{CUevent_flags, CUstream_flags};

use crate::cuda::api::Api;
use crate::cuda::capture::Relaxed;
use crate::cuda::{number, pointer};
use crate::driver::Handle;
use crate::error::DeviceError;

/// What `cuStreamQuery` says while work is left.
const NOT_READY: c_int = 600;

pub(super) fn create(api: &Api) -> Result<Handle, DeviceError> {
    let mut stream = std::ptr::null_mut();
    // SAFETY: a place for one stream.
    unsafe { api.cuStreamCreate(&mut stream, CUstream_flags::CU_STREAM_NON_BLOCKING as u32) }?;
    Ok(Handle(number(stream)))
}

pub(super) fn destroy(api: &Api, stream: Handle) -> Result<(), DeviceError> {
    // SAFETY: a stream that `create` gave.
    unsafe { api.cuStreamDestroy_v2(pointer(stream.0)) }
}

pub(super) fn synchronize(api: &Api, stream: u64) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: the caller's stream.
    unsafe { api.cuStreamSynchronize(pointer(stream)) }
}

pub(super) fn is_done(api: &Api, stream: u64) -> Result<bool, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: the caller's stream.
    match unsafe { (api.cuStreamQuery)(pointer(stream)) } {
        0 => Ok(true),
        NOT_READY => Ok(false),
        code => Err(api.failed("cuStreamQuery", code)),
    }
}

pub(super) fn create_event(api: &Api) -> Result<Handle, DeviceError> {
    let mut event = std::ptr::null_mut();
    // SAFETY: a place for one event.
    unsafe { api.cuEventCreate(&mut event, CUevent_flags::CU_EVENT_DEFAULT as u32) }?;
    Ok(Handle(number(event)))
}

pub(super) fn destroy_event(api: &Api, event: Handle) -> Result<(), DeviceError> {
    // SAFETY: an event that `create_event` gave.
    unsafe { api.cuEventDestroy_v2(pointer(event.0)) }
}

pub(super) fn record(api: &Api, event: Handle, stream: u64) -> Result<(), DeviceError> {
    // SAFETY: an event that `create_event` gave, and the caller's stream.
    unsafe { api.cuEventRecord(pointer(event.0), pointer(stream)) }
}

pub(super) fn wait(api: &Api, stream: u64, event: Handle) -> Result<(), DeviceError> {
    // SAFETY: as above.
    unsafe { api.cuStreamWaitEvent(pointer(stream), pointer(event.0), 0) }
}

pub(super) fn elapsed(api: &Api, from: Handle, to: Handle) -> Result<f32, DeviceError> {
    let mut milliseconds = 0.0;
    // SAFETY: a place for one number, and two events that `create_event` gave.
    unsafe { api.cuEventElapsedTime(&mut milliseconds, pointer(from.0), pointer(to.0)) }?;
    Ok(milliseconds)
}
