//! Structures and numbers of HIP's interface that this project passes, the same from ROCm 5 to 7
//! where nothing else is said.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use std::mem::{offset_of, size_of};

/// `hipSuccess`.
pub const SUCCESS: c_int = 0;
/// `hipErrorInvalidValue`.
pub const INVALID_VALUE: c_int = 1;
/// `hipErrorNoDevice`.
pub const NO_DEVICE: c_int = 100;
/// `hipErrorNotReady`: work is not done yet, which is no error.
pub const NOT_READY: c_int = 600;
/// `hipErrorPeerAccessAlreadyEnabled`.
pub const PEER_ACCESS_ALREADY_ENABLED: c_int = 704;

/// `hipDeviceAttributeL2CacheSize`: bytes.
pub const ATTRIBUTE_L2_CACHE_SIZE: c_int = 19;
/// `hipDeviceAttributeMultiprocessorCount`: compute units.
pub const ATTRIBUTE_MULTIPROCESSOR_COUNT: c_int = 63;

/// `HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`.
pub const FUNCTION_MAX_THREADS: c_int = 0;
/// `HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES`.
pub const FUNCTION_SHARED_BYTES: c_int = 1;
/// `HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES`.
pub const FUNCTION_LOCAL_BYTES: c_int = 3;
/// `HIP_FUNC_ATTRIBUTE_NUM_REGS`.
pub const FUNCTION_REGISTERS: c_int = 4;

/// `HIP_POINTER_ATTRIBUTE_BUFFER_ID`.
pub const POINTER_BUFFER_ID: c_int = 7;
/// `HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
pub const POINTER_DEVICE_ORDINAL: c_int = 9;

/// `hipDeviceMallocFinegrained`: coherent between devices inside a kernel.
pub const MALLOC_FINE_GRAINED: c_uint = 1;
/// `hipDeviceMallocUncached`: fine-grained, and kept out of the L2. Since ROCm 5.5.
pub const MALLOC_UNCACHED: c_uint = 3;
/// `hipHostRegisterPortable | hipHostRegisterMapped`.
pub const HOST_REGISTER_PORTABLE_MAPPED: c_uint = 1 | 2;
/// `hipMemcpyDefault`: the runtime tells host from device by the address.
pub const MEMCPY_DEFAULT: c_int = 4;
/// `hipIpcMemLazyEnablePeerAccess`, which opening demands: this since ROCm 6, 0 before.
pub const IPC_LAZY_ENABLE_PEER_ACCESS: c_uint = 1;
/// `hipStreamNonBlocking`.
pub const STREAM_NON_BLOCKING: c_uint = 1;
/// `hipStreamCaptureModeThreadLocal`.
pub const CAPTURE_THREAD_LOCAL: c_int = 1;
/// `hipStreamCaptureModeRelaxed`.
pub const CAPTURE_RELAXED: c_int = 2;
/// `hipStreamCaptureStatusNone`.
pub const CAPTURE_NONE: c_int = 0;
/// `hipStreamCaptureStatusActive`.
pub const CAPTURE_ACTIVE: c_int = 1;

/// `hipMemAllocationTypePinned`.
pub const ALLOCATION_PINNED: c_int = 1;
/// `hipMemHandleTypePosixFileDescriptor`.
pub const HANDLE_POSIX_FD: c_int = 1;
/// `hipMemLocationTypeDevice`.
pub const LOCATION_DEVICE: c_int = 1;
/// `hipMemAccessFlagsProtReadWrite`.
pub const ACCESS_READ_WRITE: c_int = 3;
/// `hipMemAllocationGranularityRecommended`.
pub const GRANULARITY_RECOMMENDED: c_int = 1;

/// Where `gcnArchName` is in what `hipGetDevicePropertiesR0600` writes: 256 characters. The layout
/// before it has not changed since ROCm 6.
pub const R0600_ARCH_AT: usize = 1160;
/// Where it is in what `hipGetDeviceProperties` of ROCm 5 writes.
pub const R0000_ARCH_AT: usize = 396;
/// Bytes of `gcnArchName`.
pub const ARCH_BYTES: usize = 256;
/// Room for device properties of any release: R0600 writes 1472 bytes, ROCm 5 writes 792.
pub const PROPERTIES_ROOM: usize = 4096; // size: not a threshold, a buffer

/// `hipIpcMemHandle_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IpcMemHandle {
    /// What only the runtime reads.
    pub reserved: [c_char; 64],
}

/// `hipUUID`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Uuid {
    /// Sixteen bytes, which on AMD's devices are the hexadecimal digits of a 64-bit number.
    pub bytes: [c_char; 16],
}

/// `hipMemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemLocation {
    /// [`LOCATION_DEVICE`].
    pub kind: c_int,
    /// The device's number.
    pub id: c_int,
}

/// `hipMemAllocationProp` as it is since ROCm 6. Before, the same 32 bytes had another order: see
/// [`Hip::vmm`](crate::Hip::vmm).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemAllocationProp {
    /// [`ALLOCATION_PINNED`].
    pub kind: c_int,
    /// [`HANDLE_POSIX_FD`].
    pub requested_handle_types: c_int,
    /// Where.
    pub location: MemLocation,
    /// Null but on Windows.
    pub win32_handle_meta_data: *mut c_void,
    /// `compressionType`: 0.
    pub compression: c_uchar,
    /// `gpuDirectRDMACapable`: 0.
    pub rdma_capable: c_uchar,
    /// `usage`: 0.
    pub usage: c_ushort,
}

/// `hipMemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemAccessDesc {
    /// Whose access.
    pub location: MemLocation,
    /// [`ACCESS_READ_WRITE`].
    pub flags: c_int,
}

// A wrong size would let the runtime write past what we gave it.
const _: () = {
    assert!(size_of::<IpcMemHandle>() == 64);
    assert!(size_of::<Uuid>() == 16);
    assert!(size_of::<MemLocation>() == 8);
    assert!(size_of::<MemAllocationProp>() == 32);
    assert!(offset_of!(MemAllocationProp, location) == 8);
    assert!(offset_of!(MemAllocationProp, win32_handle_meta_data) == 16);
    assert!(offset_of!(MemAllocationProp, compression) == 24);
    assert!(size_of::<MemAccessDesc>() == 12);
    assert!(R0600_ARCH_AT + ARCH_BYTES <= PROPERTIES_ROOM);
};
