//! Virtual memory, whose allocations are exported as file descriptors: a reserved range of
//! addresses, an allocation mapped there, and the right of a device to it.
//!
//! Handles are kept while the memory is mapped. HIP can be asked for the handle of an address, but
//! releases up to 6.3 crash where the address is of ordinary memory, and do not count what they
//! give.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use crossover_hip_sys::Vmm;
use crossover_hip_sys::layout::{
    ACCESS_READ_WRITE, ALLOCATION_PINNED, GRANULARITY_RECOMMENDED, HANDLE_POSIX_FD,
    LOCATION_DEVICE, MemAccessDesc, MemAllocationProp, MemLocation,
};

use crate::error::DeviceError;
use crate::hip::api::{Api, number, pointer};
use crate::hip::capture::Relaxed;

/// What is mapped, by its first address.
#[derive(Default)]
pub(super) struct Allocations(Mutex<BTreeMap<u64, Mapped>>);

#[derive(Clone, Copy)]
struct Mapped {
    bytes: u64,
    handle: u64,
}

impl Allocations {
    /// Is an address in one of them?
    pub(super) fn holds(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    fn find(&self, address: u64) -> Option<Mapped> {
        let mapped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (base, found) = mapped.range(..=address).next_back()?;
        (address - base < found.bytes).then_some(*found)
    }

    fn insert(&self, base: u64, mapped: Mapped) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(base, mapped);
    }

    fn remove(&self, base: u64) -> Option<Mapped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&base)
    }
}

pub(super) fn alloc(
    api: &Api,
    allocations: &Allocations,
    ordinal: u32,
    bytes: usize,
) -> Result<(u64, usize), DeviceError> {
    let vmm = vmm(api)?;
    let _relaxed = Relaxed::enter(api)?;
    let what = exportable(ordinal);
    let mut unit = 0;
    // SAFETY: a place for one size.
    let status =
        unsafe { (vmm.get_granularity)(&raw mut unit, &raw const what, GRANULARITY_RECOMMENDED) };
    api.check("hipMemGetAllocationGranularity", status)?;
    let Some(bytes) = bytes.max(1).checked_next_multiple_of(unit) else {
        return Err(DeviceError::Invalid(format!("{bytes} bytes of virtual memory are too many")));
    };
    let mut handle = null_mut();
    // SAFETY: a place for one handle.
    let status = unsafe { (vmm.create)(&raw mut handle, bytes, &raw const what, 0) };
    api.check("hipMemCreate", status)?;
    Ok((map(api, vmm, allocations, handle, ordinal, bytes)?, bytes))
}

pub(super) fn import(
    api: &Api,
    allocations: &Allocations,
    ordinal: u32,
    fd: BorrowedFd<'_>,
    bytes: usize,
) -> Result<u64, DeviceError> {
    /// The release that takes the descriptor where a pointer is declared, as CUDA does.
    const BY_VALUE: (u32, u32) = (7, 1);
    let vmm = vmm(api)?;
    let _relaxed = Relaxed::enter(api)?;
    let mut fd: RawFd = fd.as_raw_fd();
    let shareable: *mut c_void = match api.runtime.version {
        version if version >= BY_VALUE => pointer(fd as u64),
        _ => (&raw mut fd).cast(),
    };
    let mut handle = null_mut();
    // SAFETY: a place for one handle; HIP checks the descriptor, and does not keep it.
    let status = unsafe { (vmm.import)(&raw mut handle, shareable, HANDLE_POSIX_FD) };
    api.check("hipMemImportFromShareableHandle", status)?;
    map(api, vmm, allocations, handle, ordinal, bytes)
}

pub(super) fn export(
    api: &Api,
    allocations: &Allocations,
    address: u64,
) -> Result<OwnedFd, DeviceError> {
    let vmm = vmm(api)?;
    let Some(mapped) = allocations.find(address) else { return Err(unknown(address)) };
    let _relaxed = Relaxed::enter(api)?;
    let mut fd: RawFd = -1;
    // SAFETY: for this kind of handle the place is for one descriptor.
    let status =
        unsafe { (vmm.export)((&raw mut fd).cast(), pointer(mapped.handle), HANDLE_POSIX_FD, 0) };
    api.check("hipMemExportToShareableHandle", status)?;
    if fd < 0 {
        return Err(DeviceError::Invalid(format!("HIP exported {address:#x} as no descriptor")));
    }
    // SAFETY: a new descriptor, which is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn free(
    api: &Api,
    allocations: &Allocations,
    address: u64,
    bytes: usize,
) -> Result<(), DeviceError> {
    let vmm = vmm(api)?;
    let _relaxed = Relaxed::enter(api)?;
    let Some(mapped) = allocations.remove(address) else { return Err(unknown(address)) };
    // SAFETY: a range that `map` mapped and reserved, and the handle that it kept.
    let (unmapped, released, freed) = unsafe {
        (
            (vmm.unmap)(pointer(address), bytes),
            (vmm.release)(pointer(mapped.handle)),
            (vmm.address_free)(pointer(address), bytes),
        )
    };
    api.check("hipMemUnmap", unmapped)?;
    api.check("hipMemRelease", released)?;
    api.check("hipMemAddressFree", freed)
}

/// Reserves addresses for all of it, maps it there, gives the device the right to it and keeps the
/// handle. Undoes what was done where a step fails.
fn map(
    api: &Api,
    vmm: &Vmm,
    allocations: &Allocations,
    handle: *mut c_void,
    ordinal: u32,
    bytes: usize,
) -> Result<u64, DeviceError> {
    let who = MemAccessDesc { location: on(ordinal), flags: ACCESS_READ_WRITE };
    let mut base = null_mut();
    // SAFETY: a place for one address, a range that was just reserved, and a handle that is given
    // back once. What undoes a step fails only where nothing can be done about it.
    let result = unsafe {
        let reserved = (vmm.address_reserve)(&raw mut base, bytes, 0, null_mut(), 0);
        api.check("hipMemAddressReserve", reserved).and_then(|()| {
            let mapped = (vmm.map)(base, bytes, 0, handle, 0);
            api.check("hipMemMap", mapped)
                .and_then(|()| {
                    let granted = (vmm.set_access)(base, bytes, &raw const who, 1);
                    api.check("hipMemSetAccess", granted).inspect_err(|_| {
                        (vmm.unmap)(base, bytes);
                    })
                })
                .inspect_err(|_| {
                    (vmm.address_free)(base, bytes);
                })
        })
    };
    if let Err(why) = result {
        // SAFETY: as above.
        unsafe { (vmm.release)(handle) };
        return Err(why);
    }
    let base = number(base);
    allocations.insert(base, Mapped { bytes: bytes as u64, handle: number(handle) });
    Ok(base)
}

fn vmm(api: &Api) -> Result<&Vmm, DeviceError> {
    let what = "virtual memory before ROCm 6";
    api.runtime.vmm.as_ref().ok_or(DeviceError::Unsupported { vendor: "HIP", what })
}

fn unknown(address: u64) -> DeviceError {
    DeviceError::Invalid(format!("{address:#x} is in no virtual memory that was allocated here"))
}

/// Memory on a device that can be exported as a descriptor.
fn exportable(ordinal: u32) -> MemAllocationProp {
    MemAllocationProp {
        kind: ALLOCATION_PINNED,
        requested_handle_types: HANDLE_POSIX_FD,
        location: on(ordinal),
        win32_handle_meta_data: null_mut(),
        compression: 0,
        rdma_capable: 0,
        usage: 0,
    }
}

fn on(ordinal: u32) -> MemLocation {
    MemLocation { kind: LOCATION_DEVICE, id: ordinal as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_allocation_around_it() {
        let allocations = Allocations::default();
        allocations.insert(0x1000, Mapped { bytes: 0x100, handle: 1 });
        allocations.insert(0x2000, Mapped { bytes: 0x100, handle: 2 });
        let handle = |address| allocations.find(address).map(|found| found.handle);
        assert_eq!(
            [0xfff, 0x1000, 0x10ff, 0x1100, 0x20ff, 0x2100].map(handle),
            [None, Some(1), Some(1), None, Some(2), None]
        );
        allocations.remove(0x1000);
        assert!(!allocations.holds(0x1000) && allocations.holds(0x2000));
    }
}
