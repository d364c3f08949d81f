//! Memory of devices and of the host, and copies.
//!
//! What is allocated here is uncached, where the release knows that kind, and fine-grained
//! otherwise: flags and data that ranks exchange inside a kernel are visible to other devices only
//! in such memory. An engine's own tensors come from its own allocator.

use std::ffi::{c_char, c_uint, c_void};
use std::ptr::null_mut;

use crossover_hip_sys::layout::{
    HOST_REGISTER_PORTABLE_MAPPED, INVALID_VALUE, IPC_LAZY_ENABLE_PEER_ACCESS, IpcMemHandle,
    MALLOC_FINE_GRAINED, MALLOC_UNCACHED, MEMCPY_DEFAULT,
};

use crate::driver::IpcHandle;
use crate::error::DeviceError;
use crate::hip::api::{Api, number, pointer};
use crate::hip::capture::Relaxed;

const NO_FLAGS: c_uint = 0;

pub(super) fn alloc(api: &Api, bytes: usize) -> Result<u64, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let alloc = |kind| {
        let mut memory = null_mut();
        // SAFETY: a place for one address.
        let status = unsafe { (api.calls().ext_malloc_with_flags)(&raw mut memory, bytes, kind) };
        api.check("hipExtMallocWithFlags", status).map(|()| number(memory))
    };
    match alloc(MALLOC_UNCACHED) {
        // Releases before 5.5 do not know the flag.
        Err(DeviceError::Call { code: INVALID_VALUE, .. }) => alloc(MALLOC_FINE_GRAINED),
        result => result,
    }
}

pub(super) fn free(api: &Api, memory: u64) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: HIP checks the address.
    let status = unsafe { (api.calls().free)(pointer(memory)) };
    api.check("hipFree", status)
}

/// # Safety
/// The pages stay mapped until they are unregistered.
pub(super) unsafe fn register(api: &Api, pages: *mut u8, bytes: usize) -> Result<u64, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let calls = api.calls();
    let pages: *mut c_void = pages.cast();
    // SAFETY: the caller's pages.
    let status = unsafe { (calls.host_register)(pages, bytes, HOST_REGISTER_PORTABLE_MAPPED) };
    api.check("hipHostRegister", status)?;
    let mut device = null_mut();
    // SAFETY: a place for one address.
    let status = unsafe { (calls.host_get_device_pointer)(&raw mut device, pages, NO_FLAGS) };
    if let Err(why) = api.check("hipHostGetDevicePointer", status) {
        unregister(api, pages.cast())?;
        return Err(why);
    }
    Ok(number(device))
}

pub(super) fn unregister(api: &Api, pages: *mut u8) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: HIP checks that they are registered.
    let status = unsafe { (api.calls().host_unregister)(pages.cast()) };
    api.check("hipHostUnregister", status)
}

/// # Safety
/// Both ranges are valid until the copy is done.
pub(super) unsafe fn copy(
    api: &Api,
    to: u64,
    from: u64,
    bytes: usize,
    stream: u64,
) -> Result<(), DeviceError> {
    let (to, from) = (pointer(to), pointer(from));
    // SAFETY: the caller's ranges.
    let status =
        unsafe { (api.calls().memcpy_async)(to, from, bytes, MEMCPY_DEFAULT, pointer(stream)) };
    api.check("hipMemcpyAsync", status)
}

/// # Safety
/// The range is valid until it is done.
pub(super) unsafe fn fill(
    api: &Api,
    to: u64,
    word: u32,
    words: usize,
    stream: u64,
) -> Result<(), DeviceError> {
    let word = word.cast_signed();
    // SAFETY: the caller's range.
    let status =
        unsafe { (api.calls().memset_d32_async)(pointer(to), word, words, pointer(stream)) };
    api.check("hipMemsetD32Async", status)
}

pub(super) fn export(api: &Api, base: u64) -> Result<IpcHandle, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let mut handle = IpcMemHandle { reserved: [0; 64] };
    // SAFETY: a place for one handle; HIP checks the address.
    let status = unsafe { (api.calls().ipc_get_mem_handle)(&raw mut handle, pointer(base)) };
    api.check("hipIpcGetMemHandle", status)?;
    Ok(handle.reserved.map(|c| c as u8))
}

pub(super) fn import(api: &Api, handle: &IpcHandle) -> Result<u64, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let handle = IpcMemHandle { reserved: handle.map(|b| b as c_char) };
    let open = |flags| {
        let mut base = null_mut();
        // SAFETY: a place for one address; HIP checks the handle.
        let status = unsafe { (api.calls().ipc_open_mem_handle)(&raw mut base, handle, flags) };
        api.check("hipIpcOpenMemHandle", status).map(|()| number(base))
    };
    // The one flag that it demands has had two values.
    open(IPC_LAZY_ENABLE_PEER_ACCESS).or_else(|why| open(NO_FLAGS).map_err(|_| why))
}

pub(super) fn unimport(api: &Api, base: u64) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: HIP checks the address.
    let status = unsafe { (api.calls().ipc_close_mem_handle)(pointer(base)) };
    api.check("hipIpcCloseMemHandle", status)
}
