//! Devices and their primary contexts.

use std::ffi::{CStr, c_char, c_int};

use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUuuid};

use crate::cuda::api::Api;
use crate::cuda::{number, pointer};
use crate::driver::{Description, Handle};
use crate::error::DeviceError;

/// What `cuCtxEnablePeerAccess` says where it is enabled.
const PEER_ACCESS_ALREADY_ENABLED: c_int = 704;
/// What `cuCtxGetDevice` says where no context is current.
const INVALID_CONTEXT: c_int = 201;
/// The first architecture with programmatic dependent launches.
const HOPPER: c_int = 9;

pub(super) fn devices(api: &Api) -> Result<Vec<Description>, DeviceError> {
    (0..count(api)?).map(|ordinal| describe(api, ordinal)).collect()
}

pub(super) fn every_device_is_programmatic(api: &Api) -> Result<bool, DeviceError> {
    for ordinal in 0..count(api)? {
        if compute_capability(api, device(api, ordinal)?)?.0 < HOPPER {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Has the current context's device programmatic launches?
pub(super) fn current_is_programmatic(api: &Api) -> Result<bool, DeviceError> {
    let mut current = 0;
    // SAFETY: a place for one device.
    unsafe { api.cuCtxGetDevice(&mut current) }?;
    Ok(compute_capability(api, current)?.0 >= HOPPER)
}

/// The ordinal of the current context's device.
pub(super) fn current(api: &Api) -> Result<Option<u32>, DeviceError> {
    let mut current = 0;
    // SAFETY: a place for one device.
    match unsafe { (api.cuCtxGetDevice)(&mut current) } {
        // A `CUdevice` is its ordinal: the driver hands out no other.
        0 => Ok(u32::try_from(current).ok()),
        INVALID_CONTEXT => Ok(None),
        code => Err(api.failed("cuCtxGetDevice", code)),
    }
}

pub(super) fn retain(api: &Api, ordinal: u32) -> Result<Handle, DeviceError> {
    let device = device(api, ordinal)?;
    let mut context = std::ptr::null_mut();
    // SAFETY: a place for one context.
    unsafe { api.cuDevicePrimaryCtxRetain(&mut context, device) }?;
    Ok(Handle(number(context)))
}

pub(super) fn release(api: &Api, ordinal: u32) -> Result<(), DeviceError> {
    let device = device(api, ordinal)?;
    // SAFETY: no pointer.
    unsafe { api.cuDevicePrimaryCtxRelease_v2(device) }
}

pub(super) fn make_current(api: &Api, context: Handle) -> Result<(), DeviceError> {
    let mut current = std::ptr::null_mut();
    // SAFETY: a place for one context; the handle is one that `retain` gave.
    unsafe {
        api.cuCtxGetCurrent(&mut current)?;
        if number(current) == context.0 {
            return Ok(());
        }
        api.cuCtxSetCurrent(pointer(context.0))
    }
}

pub(super) fn can_access(api: &Api, ordinal: u32, peer: u32) -> Result<bool, DeviceError> {
    let (device, peer) = (device(api, ordinal)?, device(api, peer)?);
    let mut can = 0;
    // SAFETY: a place for one number.
    unsafe { api.cuDeviceCanAccessPeer(&mut can, device, peer) }?;
    Ok(can != 0)
}

pub(super) fn enable_peer(api: &Api, peer: u32) -> Result<(), DeviceError> {
    // The call wants the peer's context. Retaining it for good keeps it alive for what is reached
    // through it, and a primary context lives as long as the process in any engine.
    let context = retain(api, peer)?;
    // SAFETY: a context that was just retained.
    let code = unsafe { (api.cuCtxEnablePeerAccess)(pointer(context.0), 0) };
    match code {
        0 => Ok(()),
        PEER_ACCESS_ALREADY_ENABLED => release(api, peer),
        code => {
            release(api, peer)?;
            Err(api.failed("cuCtxEnablePeerAccess", code))
        }
    }
}

fn count(api: &Api) -> Result<u32, DeviceError> {
    let mut count = 0;
    // SAFETY: a place for one number.
    unsafe { api.cuDeviceGetCount(&mut count) }?;
    Ok(u32::try_from(count).unwrap_or(0))
}

fn device(api: &Api, ordinal: u32) -> Result<c_int, DeviceError> {
    let count = count(api)?;
    if ordinal >= count {
        return Err(DeviceError::Invalid(format!(
            "there is no device cuda:{ordinal}: this process sees {count}; \
             CUDA_VISIBLE_DEVICES says which"
        )));
    }
    let mut device = 0;
    // SAFETY: a place for one device. The cast is exact: the ordinal is below a positive `int`.
    unsafe { api.cuDeviceGet(&mut device, ordinal as c_int) }?;
    Ok(device)
}

fn describe(api: &Api, ordinal: u32) -> Result<Description, DeviceError> {
    let device = device(api, ordinal)?;
    let (major, minor) = compute_capability(api, device)?;
    let processors = attribute(api, device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let l2 = attribute(api, device, Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?;
    let mut memory = 0;
    // SAFETY: a place for one size.
    unsafe { api.cuDeviceTotalMem_v2(&mut memory, device) }?;
    // SAFETY: the buffer's length is what `text` says.
    let name = text(|to, len| unsafe { api.cuDeviceGetName(to, len, device) })?;
    // SAFETY: likewise.
    let pci = text(|to, len| unsafe { api.cuDeviceGetPCIBusId(to, len, device) })?;
    Ok(Description {
        ordinal,
        name,
        arch: format!("sm{major}{minor}"),
        uuid: uuid(api, device)?,
        pci: pci.to_ascii_lowercase(),
        multiprocessors: processors.unsigned_abs(),
        l2: l2.unsigned_abs().into(),
        memory: memory as u64,
    })
}

fn compute_capability(api: &Api, device: c_int) -> Result<(c_int, c_int), DeviceError> {
    Ok((
        attribute(api, device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(api, device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    ))
}

fn attribute(api: &Api, device: c_int, attribute: Attribute) -> Result<c_int, DeviceError> {
    let mut value = 0;
    // SAFETY: a place for one number.
    unsafe { api.cuDeviceGetAttribute(&mut value, attribute, device) }?;
    Ok(value)
}

/// As NVML writes it. The driver tells an instance's UUID where the device is partitioned, and the
/// whole device's by its older function: two UUIDs mean a MIG instance.
fn uuid(api: &Api, device: c_int) -> Result<String, DeviceError> {
    let mut seen = CUuuid { bytes: [0; 16] };
    // SAFETY: a place for one UUID.
    unsafe { api.cuDeviceGetUuid_v2(&mut seen, device) }?;
    let mut whole = seen;
    if let Some(get) = api.whole_uuid {
        // SAFETY: likewise. Where it fails, `whole` stays what it was.
        unsafe { get(&mut whole, device) };
    }
    Ok(write_uuid(if whole.bytes == seen.bytes { "GPU" } else { "MIG" }, &seen))
}

fn write_uuid(kind: &str, uuid: &CUuuid) -> String {
    let mut written = kind.to_string();
    for (at, byte) in uuid.bytes.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&at) {
            written.push('-');
        }
        written.push_str(&format!("{:02x}", *byte as u8));
    }
    written
}

/// A text that the driver writes into a buffer.
fn text(
    write: impl FnOnce(*mut c_char, c_int) -> Result<(), DeviceError>,
) -> Result<String, DeviceError> {
    // Longer than any name or bus id that a driver gives; the last byte stays 0.
    let mut buffer = [0u8; 256];
    write(buffer.as_mut_ptr().cast(), buffer.len() as c_int - 1)?;
    let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_nvml_writes_it() {
        let bytes = std::array::from_fn(|at| (at as u8 * 17) as c_char);
        let written = write_uuid("GPU", &CUuuid { bytes });
        assert_eq!(written, "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }
}
