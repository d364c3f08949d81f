//! Where a pointer comes from.

use std::ffi::c_int;
use std::ptr::null_mut;

use crossover_hip_sys::layout::{POINTER_BUFFER_ID, POINTER_DEVICE_ORDINAL};

use crate::driver::{Provenance, Sharing};
use crate::error::DeviceError;
use crate::hip::api::{Api, number, pointer};
use crate::hip::memory;
use crate::hip::virtual_memory::Allocations;

pub(super) fn of(
    api: &Api,
    allocations: &Allocations,
    address: u64,
) -> Result<Provenance, DeviceError> {
    let (mut base, mut bytes) = (null_mut(), 0);
    // The attributes of the same meaning are of no use: some releases write 32 bits of the size.
    // SAFETY: places for an address and a size; HIP checks the pointer.
    let status = unsafe {
        (api.calls().mem_get_address_range)(&raw mut base, &raw mut bytes, pointer(address))
    };
    api.check("hipMemGetAddressRange", status)?;
    let base = number(base);
    let ordinal = attribute(api, POINTER_DEVICE_ORDINAL, address)? as u32 as c_int;
    let Ok(ordinal) = u32::try_from(ordinal) else {
        return Err(DeviceError::Invalid(format!("{address:#x} is no memory of a device")));
    };
    Ok(Provenance {
        base,
        bytes: bytes as u64,
        ordinal,
        sharing: sharing(api, allocations, base),
        id: attribute(api, POINTER_BUFFER_ID, address)?,
    })
}

/// The runtime has no answer but to try: the attribute for it is not supported.
fn sharing(api: &Api, allocations: &Allocations, base: u64) -> Sharing {
    if allocations.holds(base) {
        Sharing::PosixFd
    } else if memory::export(api, base).is_ok() {
        Sharing::LegacyIpc
    } else {
        Sharing::None
    }
}

/// One fact. Some are written as 32 bits, so the rest is zeroed first.
fn attribute(api: &Api, attribute: c_int, address: u64) -> Result<u64, DeviceError> {
    let mut value = 0_u64;
    // SAFETY: more room than any of those asked for needs.
    let status = unsafe {
        (api.calls().pointer_get_attribute)((&raw mut value).cast(), attribute, pointer(address))
    };
    api.check("hipPointerGetAttribute", status)?;
    Ok(value)
}
