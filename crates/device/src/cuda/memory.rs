//! Device memory, locked host pages, copies and fills, and memory shared by handle.

use cudarc::driver::sys::{CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE};
use cudarc::driver::sys::{CUipcMem_flags, CUipcMemHandle};

use crate::cuda::api::Api;
use crate::cuda::capture::Relaxed;
use crate::cuda::pointer;
use crate::driver::IpcHandle;
use crate::error::DeviceError;

pub(super) fn alloc(api: &Api, bytes: usize) -> Result<u64, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let mut address = 0;
    // SAFETY: a place for one address.
    unsafe { api.cuMemAlloc_v2(&mut address, bytes) }?;
    Ok(address)
}

pub(super) fn free(api: &Api, address: u64) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: the driver checks that the address is one of its allocations.
    unsafe { api.cuMemFree_v2(address) }
}

/// # Safety
/// The pages stay mapped until they are unregistered.
pub(super) unsafe fn register_host(
    api: &Api,
    pages: *mut u8,
    bytes: usize,
) -> Result<u64, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    // SAFETY: the caller's promise.
    unsafe { api.cuMemHostRegister_v2(pages.cast(), bytes, flags) }?;
    let mut address = 0;
    // SAFETY: a place for one address.
    let mapped = unsafe { api.cuMemHostGetDevicePointer_v2(&mut address, pages.cast(), 0) };
    match mapped {
        Ok(()) => Ok(address),
        Err(why) => {
            // SAFETY: registered above.
            unsafe { api.cuMemHostUnregister(pages.cast()) }?;
            Err(why)
        }
    }
}

pub(super) fn unregister_host(api: &Api, pages: *mut u8) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: the driver checks that the pages are registered.
    unsafe { api.cuMemHostUnregister(pages.cast()) }
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
    // SAFETY: the caller's promise. Addresses are unified: the driver knows which side each is on.
    unsafe { api.cuMemcpyAsync(to, from, bytes, pointer(stream)) }
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
    // SAFETY: the caller's promise.
    unsafe { api.cuMemsetD32Async(to, word, words, pointer(stream)) }
}

pub(super) fn export(api: &Api, base: u64) -> Result<IpcHandle, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    // SAFETY: a place for one handle; the driver checks the address.
    unsafe { api.cuIpcGetMemHandle(&mut handle, base) }?;
    Ok(handle.reserved.map(|byte| byte as u8))
}

pub(super) fn import(api: &Api, handle: &IpcHandle) -> Result<u64, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let handle = CUipcMemHandle { reserved: handle.map(|byte| byte as _) };
    let flags = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
    let mut address = 0;
    // SAFETY: a place for one address; the driver checks the handle.
    unsafe { api.cuIpcOpenMemHandle_v2(&mut address, handle, flags) }?;
    Ok(address)
}

pub(super) fn unimport(api: &Api, base: u64) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: the driver checks that the address is of an opened handle.
    unsafe { api.cuIpcCloseMemHandle(base) }
}
