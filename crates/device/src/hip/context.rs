//! Devices and what they are. HIP has no contexts: a device's number stands for one.

use std::ffi::{CStr, c_char, c_int, c_uint};

use crossover_hip_sys::layout::{
    ARCH_BYTES, ATTRIBUTE_L2_CACHE_SIZE, ATTRIBUTE_MULTIPROCESSOR_COUNT, NO_DEVICE,
    PEER_ACCESS_ALREADY_ENABLED, PROPERTIES_ROOM, Uuid,
};

use crate::driver::{Description, Handle};
use crate::error::DeviceError;
use crate::hip::api::Api;

/// How many devices this process sees: one at least.
pub(super) fn count(api: &Api) -> Result<u32, DeviceError> {
    let mut count = 0;
    // SAFETY: a place for one number.
    let status = unsafe { (api.calls().get_device_count)(&raw mut count) };
    if status == NO_DEVICE {
        let why = api.failed("hipGetDeviceCount", status);
        return Err(DeviceError::Absent(format!(
            "the HIP runtime {} sees no device ({why}): is the amdgpu driver loaded, may this user \
             open /dev/kfd, and what does HIP_VISIBLE_DEVICES say?",
            api.runtime.library
        )));
    }
    api.check("hipGetDeviceCount", status)?;
    Ok(u32::try_from(count).unwrap_or(0))
}

pub(super) fn devices(api: &Api) -> Result<Vec<Description>, DeviceError> {
    (0..count(api)?).map(|ordinal| describe(api, ordinal)).collect()
}

fn describe(api: &Api, ordinal: u32) -> Result<Description, DeviceError> {
    let calls = api.calls();
    let device = ordinal as c_int;
    let name = text(|room| {
        // SAFETY: a place for so many characters.
        let status = unsafe { (calls.device_get_name)(room.as_mut_ptr(), room.len() as _, device) };
        api.check("hipDeviceGetName", status)
    })?;
    let pci = text(|room| {
        // SAFETY: as above.
        let status =
            unsafe { (calls.device_get_pci_bus_id)(room.as_mut_ptr(), room.len() as _, device) };
        api.check("hipDeviceGetPCIBusId", status)
    })?;
    let mut memory = 0;
    // SAFETY: a place for one size.
    let status = unsafe { (calls.device_total_mem)(&raw mut memory, device) };
    api.check("hipDeviceTotalMem", status)?;
    Ok(Description {
        ordinal,
        name,
        arch: arch(api, device)?,
        uuid: uuid(api, device)?.unwrap_or_else(|| format!("GPU-at-{pci}")),
        pci,
        multiprocessors: attribute(api, ATTRIBUTE_MULTIPROCESSOR_COUNT, device)?,
        l2: attribute(api, ATTRIBUTE_L2_CACHE_SIZE, device)?.into(),
        memory: memory as u64,
    })
}

/// What a call writes, up to the zero that ends it.
fn text(
    write: impl FnOnce(&mut [c_char; 256]) -> Result<(), DeviceError>,
) -> Result<String, DeviceError> {
    let mut room = [0; 256];
    write(&mut room)?;
    Ok(until_zero(&room.map(|c| c as u8)))
}

fn until_zero(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
    String::from_utf8_lossy(text).trim().to_owned()
}

fn attribute(api: &Api, attribute: c_int, device: c_int) -> Result<u32, DeviceError> {
    let mut value = 0;
    // SAFETY: a place for one number.
    let status = unsafe { (api.calls().device_get_attribute)(&raw mut value, attribute, device) };
    api.check("hipDeviceGetAttribute", status)?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// `gfx942` of `gfx942:sramecc+:xnack-`: what follows are modes, for which no separate images are
/// built.
fn arch(api: &Api, device: c_int) -> Result<String, DeviceError> {
    let mut room = vec![0_u64; PROPERTIES_ROOM / 8];
    // SAFETY: more room than any release writes.
    let status = unsafe { (api.runtime.properties.get)(room.as_mut_ptr().cast(), device) };
    api.check("hipGetDeviceProperties", status)?;
    let bytes: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let from = api.runtime.properties.arch_at;
    arch_of(&bytes[from..from + ARCH_BYTES]).ok_or_else(|| {
        DeviceError::Invalid(format!(
            "{} tells no architecture of device {device} where its release should",
            api.runtime.library
        ))
    })
}

fn arch_of(field: &[u8]) -> Option<String> {
    let name = until_zero(field);
    let arch = name.split(':').next()?;
    let digits = arch.strip_prefix("gfx")?;
    let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    whole.then(|| arch.to_owned())
}

/// As the tools of ROCm and `ROCR_VISIBLE_DEVICES` write it; none where the device has none.
fn uuid(api: &Api, device: c_int) -> Result<Option<String>, DeviceError> {
    let Some(call) = api.runtime.device_uuid else { return Ok(None) };
    let mut uuid = Uuid { bytes: [0; 16] };
    // SAFETY: a place for one.
    let status = unsafe { (call.get)(&raw mut uuid, device) };
    api.check("hipDeviceGetUuid", status)?;
    Ok(uuid_of(uuid.bytes.map(|c| c as u8)))
}

fn uuid_of(bytes: [u8; 16]) -> Option<String> {
    if bytes == [0; 16] {
        return None;
    }
    Some(if bytes.iter().all(u8::is_ascii_hexdigit) {
        format!("GPU-{}", String::from_utf8_lossy(&bytes))
    } else {
        format!("GPU-{:032x}", u128::from_be_bytes(bytes))
    })
}

pub(super) fn current(api: &Api) -> Result<Option<u32>, DeviceError> {
    let mut device = 0;
    // SAFETY: a place for one number.
    let status = unsafe { (api.calls().get_device)(&raw mut device) };
    api.check("hipGetDevice", status)?;
    Ok(u32::try_from(device).ok())
}

pub(super) fn retain(api: &Api, ordinal: u32) -> Result<Handle, DeviceError> {
    let count = count(api)?;
    if ordinal < count {
        Ok(Handle(ordinal.into()))
    } else {
        Err(DeviceError::Invalid(format!("there is no device hip:{ordinal}: HIP sees {count}")))
    }
}

pub(super) fn make_current(api: &Api, context: Handle) -> Result<(), DeviceError> {
    // SAFETY: no pointer.
    let status = unsafe { (api.calls().set_device)(context.0 as c_int) };
    api.check("hipSetDevice", status)
}

pub(super) fn synchronize(api: &Api) -> Result<(), DeviceError> {
    // SAFETY: no pointer.
    let status = unsafe { (api.calls().device_synchronize)() };
    api.check("hipDeviceSynchronize", status)
}

pub(super) fn can_access(api: &Api, ordinal: u32, peer: u32) -> Result<bool, DeviceError> {
    let mut can = 0;
    // SAFETY: a place for one number.
    let status = unsafe {
        (api.calls().device_can_access_peer)(&raw mut can, ordinal as c_int, peer as c_int)
    };
    api.check("hipDeviceCanAccessPeer", status)?;
    Ok(can != 0)
}

pub(super) fn enable_peer(api: &Api, peer: u32) -> Result<(), DeviceError> {
    const NO_FLAGS: c_uint = 0;
    // SAFETY: no pointer.
    let status = unsafe { (api.calls().device_enable_peer_access)(peer as c_int, NO_FLAGS) };
    match api.check("hipDeviceEnablePeerAccess", status) {
        Err(_) if status == PEER_ACCESS_ALREADY_ENABLED => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> [u8; 256] {
        let mut field = [0; 256];
        field[..text.len()].copy_from_slice(text.as_bytes());
        field
    }

    #[test]
    fn an_architecture_is_told_without_its_modes() {
        assert_eq!(arch_of(&field("gfx942:sramecc+:xnack-")).as_deref(), Some("gfx942"));
        assert_eq!(arch_of(&field("gfx90a")).as_deref(), Some("gfx90a"));
    }

    #[test]
    fn another_layouts_bytes_are_no_architecture() {
        assert_eq!(arch_of(&[0; 256]), None);
        assert_eq!(arch_of(&[0xff; 256]), None);
        assert_eq!(arch_of(&field("gfx")), None);
    }

    #[test]
    fn a_uuid_is_written_as_rocms_tools_do() {
        assert_eq!(uuid_of(*b"b3f9a1c2d4e5f601").as_deref(), Some("GPU-b3f9a1c2d4e5f601"));
        assert_eq!(uuid_of([0; 16]), None);
        let mut bytes = [0; 16];
        bytes[15] = 7;
        assert_eq!(uuid_of(bytes), Some(format!("GPU-{:032x}", 7)));
    }
}
