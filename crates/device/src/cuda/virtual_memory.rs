//! Virtual memory, whose allocations are exported as file descriptors: a reserved range of
//! addresses, an allocation mapped there, and the right of a device to it.
//!
//! Once an allocation is mapped its handle is released: the mapping keeps it.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType as HandleType, CUmemAllocationProp,
    CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType, CUmemGenericAllocationHandle,
    CUmemLocation, CUmemLocationType,
};

use crate::cuda::api::Api;
use crate::cuda::capture::Relaxed;
use crate::cuda::pointer;
use crate::error::DeviceError;

pub(super) fn alloc(api: &Api, ordinal: u32, bytes: usize) -> Result<(u64, usize), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let prop = exportable(ordinal);
    let bytes = round_up(api, &prop, bytes)?;
    let mut handle = 0;
    // SAFETY: a place for one handle.
    unsafe { api.cuMemCreate(&mut handle, bytes, &prop, 0) }?;
    let address = Allocation { api, handle }.map(ordinal, bytes)?;
    Ok((address, bytes))
}

pub(super) fn free(api: &Api, address: u64, bytes: usize) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: the driver checks that the range is one that was mapped and reserved.
    unsafe {
        api.cuMemUnmap(address, bytes)?;
        api.cuMemAddressFree(address, bytes)
    }
}

pub(super) fn export(api: &Api, address: u64) -> Result<OwnedFd, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let mut handle = 0;
    // SAFETY: a place for one handle; the driver checks the address.
    unsafe { api.cuMemRetainAllocationHandle(&mut handle, pointer(address)) }?;
    Allocation { api, handle }.descriptor()
}

pub(super) fn import(
    api: &Api,
    ordinal: u32,
    fd: BorrowedFd<'_>,
    bytes: usize,
) -> Result<u64, DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    let mut handle = 0;
    // The descriptor itself is passed where a pointer is declared.
    let shareable = pointer(fd.as_raw_fd() as u64);
    // SAFETY: a place for one handle; the driver checks the descriptor, and does not keep it.
    unsafe {
        api.cuMemImportFromShareableHandle(
            &mut handle,
            shareable,
            HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        )
    }?;
    Allocation { api, handle }.map(ordinal, bytes)
}

/// A handle of an allocation, released when dropped.
struct Allocation<'a> {
    api: &'a Api,
    handle: CUmemGenericAllocationHandle,
}

impl Allocation<'_> {
    /// Reserves addresses for all of it, maps it there, and gives the device the right to it.
    /// Undoes what was done where a step fails.
    fn map(self, ordinal: u32, bytes: usize) -> Result<u64, DeviceError> {
        let api = self.api;
        let access = CUmemAccessDesc {
            location: on(ordinal),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        let mut address = 0;
        // SAFETY: a place for one address, and a range that was just reserved.
        unsafe {
            api.cuMemAddressReserve(&mut address, bytes, 0, 0, 0)?;
            if let Err(why) = api.cuMemMap(address, bytes, 0, self.handle, 0) {
                api.cuMemAddressFree(address, bytes)?;
                return Err(why);
            }
            if let Err(why) = api.cuMemSetAccess(address, bytes, &access, 1) {
                api.cuMemUnmap(address, bytes)?;
                api.cuMemAddressFree(address, bytes)?;
                return Err(why);
            }
        }
        Ok(address)
    }

    fn descriptor(self) -> Result<OwnedFd, DeviceError> {
        let mut fd: RawFd = -1;
        // SAFETY: for this kind of handle the place is for one descriptor.
        unsafe {
            self.api.cuMemExportToShareableHandle(
                (&raw mut fd).cast(),
                self.handle,
                HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                0,
            )
        }?;
        // SAFETY: a new descriptor, which is nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl Drop for Allocation<'_> {
    fn drop(&mut self) {
        // SAFETY: a handle that is released once. It fails only where the driver is going down, and
        // then there is nothing left to release.
        let _ = unsafe { self.api.cuMemRelease(self.handle) };
    }
}

/// Memory on a device that can be exported as a descriptor.
fn exportable(ordinal: u32) -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        location: on(ordinal),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

fn on(ordinal: u32) -> CUmemLocation {
    // The cast is exact for any ordinal that the driver takes; it refuses others.
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: ordinal as i32 }
}

fn round_up(api: &Api, prop: &CUmemAllocationProp, bytes: usize) -> Result<usize, DeviceError> {
    let mut unit = 0;
    let option = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    // SAFETY: a place for one size.
    unsafe { api.cuMemGetAllocationGranularity(&mut unit, prop, option) }?;
    bytes.max(1).checked_next_multiple_of(unit).ok_or_else(|| {
        DeviceError::Invalid(format!("{bytes} bytes of virtual memory are more than there can be"))
    })
}
