//! Where a pointer comes from, asked of the driver.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::CUpointer_attribute as Attribute;

use crate::cuda::api::Api;
use crate::driver::{Provenance, Sharing};
use crate::error::DeviceError;

/// `CU_MEMORYTYPE_DEVICE`.
const ON_DEVICE: c_uint = 2;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const POSIX_FD: u64 = 1;
/// `CU_MEM_HANDLE_TYPE_FABRIC`.
const FABRIC: u64 = 8;

/// What the driver says of a pointer. What it does not know it leaves at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    memory_type: c_uint,
    base: u64,
    bytes: usize,
    ordinal: c_int,
    id: u64,
    managed: c_uint,
    legacy: c_int,
    /// The kinds of handles that its allocation was made for, a bit each.
    handles: u64,
    /// The pool that it is from, or null.
    pool: u64,
    /// Of virtual memory, the mapping that the pointer is in: one range of addresses can hold many.
    mapping: u64,
    mapping_bytes: usize,
}

pub(super) fn provenance(api: &Api, pointer: u64) -> Result<Provenance, DeviceError> {
    let told = ask(api, pointer)?;
    let (Ok(ordinal), true) = (u32::try_from(told.ordinal), told.memory_type != 0) else {
        return Err(DeviceError::Invalid(format!(
            "{pointer:#x} is no memory that the CUDA driver knows: give a device \
             pointer of this process"
        )));
    };
    let sharing = sharing(&told);
    let (base, bytes) = allocation(&told, sharing);
    Ok(Provenance { base, bytes, ordinal, sharing, id: told.id })
}

/// What a handle or descriptor would be of.
fn allocation(told: &Told, sharing: Sharing) -> (u64, u64) {
    match sharing {
        Sharing::PosixFd | Sharing::Fabric if told.mapping_bytes != 0 => {
            (told.mapping, told.mapping_bytes as u64)
        }
        _ => (told.base, told.bytes as u64),
    }
}

/// How another process can be given it. A pool's memory is not mapped from one allocation that
/// could be exported, whatever handles the pool was made for.
fn sharing(told: &Told) -> Sharing {
    if told.memory_type != ON_DEVICE || told.managed != 0 {
        return Sharing::None;
    }
    if told.legacy != 0 {
        return Sharing::LegacyIpc;
    }
    match told.handles {
        _ if told.pool != 0 => Sharing::None,
        kinds if kinds & POSIX_FD != 0 => Sharing::PosixFd,
        kinds if kinds & FABRIC != 0 => Sharing::Fabric,
        _ => Sharing::None,
    }
}

fn ask(api: &Api, pointer: u64) -> Result<Told, DeviceError> {
    let mut told = Told::default();
    let mut questions = [
        (Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, place(&mut told.memory_type)),
        (Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, place(&mut told.base)),
        (Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE, place(&mut told.bytes)),
        (Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, place(&mut told.ordinal)),
        (Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID, place(&mut told.id)),
        (Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED, place(&mut told.managed)),
        (Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, place(&mut told.legacy)),
        (Attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, place(&mut told.handles)),
        (Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, place(&mut told.pool)),
        (Attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, place(&mut told.mapping)),
        (Attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE, place(&mut told.mapping_bytes)),
    ];
    let mut attributes = questions.map(|(attribute, _)| attribute);
    let mut places = questions.each_mut().map(|(_, place)| *place);
    // SAFETY: as many attributes as places, each of which is as wide as the manual says: `unsigned`
    // for the type and the flag of managed memory, `int` for the ordinal and the legacy flag, 64
    // bits for the rest.
    unsafe {
        api.cuPointerGetAttributes(
            attributes.len() as c_uint,
            attributes.as_mut_ptr(),
            places.as_mut_ptr(),
            pointer,
        )
    }?;
    Ok(told)
}

fn place<T>(value: &mut T) -> *mut c_void {
    (&raw mut *value).cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decision, restated as a table: the first line that fits.
    #[test]
    fn sharing_follows_from_what_the_driver_tells() {
        for memory_type in [0, 1, ON_DEVICE, 3, 4] {
            for managed in [0, 1] {
                for legacy in [0, 1] {
                    for pool in [0, 0x7f00] {
                        for handles in 0..16 {
                            let told = Told {
                                memory_type,
                                managed,
                                legacy,
                                pool,
                                handles,
                                ..Told::default()
                            };
                            let device = memory_type == ON_DEVICE && managed == 0;
                            let expected = match (device, legacy, pool, handles & 1, handles & 8) {
                                (false, ..) => Sharing::None,
                                (true, 1, ..) => Sharing::LegacyIpc,
                                (true, 0, 0, 1, _) => Sharing::PosixFd,
                                (true, 0, 0, 0, 8) => Sharing::Fabric,
                                _ => Sharing::None,
                            };
                            assert_eq!(sharing(&told), expected, "{told:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_pools_give_is_staged() {
        let told = Told { memory_type: ON_DEVICE, handles: POSIX_FD, pool: 1, ..Told::default() };
        assert_eq!(sharing(&told), Sharing::None);
    }
}
