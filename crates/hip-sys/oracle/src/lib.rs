//! Signatures, layouts and numbers of crossover-hip-sys against those that bindgen made for crates.io's
//! `hip-sys` of ROCm 5.4's headers. That crate links the HIP runtime, so this is no part of the
//! workspace. With Debian's `libamdhip64-dev`:
//!
//! ```text
//! cd crates/hip-sys/oracle
//! HIP_PATH=/usr RUSTFLAGS="-L native=/usr/lib/x86_64-linux-gnu" cargo test
//! ```

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, c_int};
    use std::mem::{offset_of, size_of};

    use crossover_hip_sys::Hip;
    use crossover_hip_sys::layout::*;
    use hip_sys::hiprt as theirs;

    #[test]
    fn numbers_are_equal() {
        use theirs::{
            hipDeviceAttribute_t as Attribute, hipError_t as Error,
            hipFunction_attribute as Function, hipMemcpyKind as Copy,
            hipPointer_attribute as Pointer,
        };
        let pairs: &[(c_int, c_int)] = &[
            (SUCCESS, Error::hipSuccess as c_int),
            (INVALID_VALUE, Error::hipErrorInvalidValue as c_int),
            (NO_DEVICE, Error::hipErrorNoDevice as c_int),
            (NOT_READY, Error::hipErrorNotReady as c_int),
            (PEER_ACCESS_ALREADY_ENABLED, Error::hipErrorPeerAccessAlreadyEnabled as c_int),
            (ATTRIBUTE_L2_CACHE_SIZE, Attribute::hipDeviceAttributeL2CacheSize as c_int),
            (
                ATTRIBUTE_MULTIPROCESSOR_COUNT,
                Attribute::hipDeviceAttributeMultiprocessorCount as c_int,
            ),
            (FUNCTION_MAX_THREADS, Function::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as c_int),
            (FUNCTION_SHARED_BYTES, Function::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as c_int),
            (FUNCTION_LOCAL_BYTES, Function::HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES as c_int),
            (FUNCTION_REGISTERS, Function::HIP_FUNC_ATTRIBUTE_NUM_REGS as c_int),
            (POINTER_BUFFER_ID, Pointer::HIP_POINTER_ATTRIBUTE_BUFFER_ID as c_int),
            (POINTER_DEVICE_ORDINAL, Pointer::HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL as c_int),
            (MEMCPY_DEFAULT, Copy::hipMemcpyDefault as c_int),
            (
                CAPTURE_THREAD_LOCAL,
                theirs::hipStreamCaptureMode::hipStreamCaptureModeThreadLocal as c_int,
            ),
            (CAPTURE_RELAXED, theirs::hipStreamCaptureMode::hipStreamCaptureModeRelaxed as c_int),
        ];
        for (at, (ours, theirs)) in pairs.iter().enumerate() {
            assert_eq!(ours, theirs, "pair {at}");
        }
        assert_eq!(MALLOC_FINE_GRAINED, theirs::hipDeviceMallocFinegrained);
        assert_eq!(
            HOST_REGISTER_PORTABLE_MAPPED,
            theirs::hipHostRegisterPortable | theirs::hipHostRegisterMapped
        );
        assert_eq!(STREAM_NON_BLOCKING, theirs::hipStreamNonBlocking);
    }

    #[test]
    fn layouts_are_equal() {
        assert_eq!(size_of::<IpcMemHandle>(), size_of::<theirs::hipIpcMemHandle_t>());
        assert_eq!(size_of::<Uuid>(), size_of::<theirs::hipUUID_t>());
        assert_eq!(size_of::<MemLocation>(), size_of::<theirs::hipMemLocation>());
        assert_eq!(size_of::<MemAccessDesc>(), size_of::<theirs::hipMemAccessDesc>());
        assert_eq!(size_of::<MemAllocationProp>(), size_of::<theirs::hipMemAllocationProp>());
        assert_eq!(
            offset_of!(MemAllocationProp, location),
            offset_of!(theirs::hipMemAllocationProp, location)
        );
        assert_eq!(
            offset_of!(MemAllocationProp, win32_handle_meta_data),
            offset_of!(theirs::hipMemAllocationProp, win32HandleMetaData)
        );
        assert_eq!(
            offset_of!(MemAllocationProp, compression),
            offset_of!(theirs::hipMemAllocationProp, allocFlags)
        );
        assert_eq!(R0000_ARCH_AT, offset_of!(theirs::hipDeviceProp_t, gcnArchName));
        assert!(size_of::<theirs::hipDeviceProp_t>() <= PROPERTIES_ROOM);
    }

    #[test]
    fn both_give_the_same_answers() {
        let hip = Hip::load(None).unwrap();
        let (mut ours, mut yours) = (-1, -1);
        // SAFETY: the pointers are valid for the calls, and texts are constants of the library.
        unsafe {
            let status = (hip.calls.get_device_count)(&raw mut ours);
            assert_eq!(status, theirs::hipGetDeviceCount(&raw mut yours) as c_int);
            let text = CStr::from_ptr((hip.calls.get_error_string)(status));
            let error = theirs::hipGetDeviceCount(&raw mut yours);
            assert_eq!(text, CStr::from_ptr(theirs::hipGetErrorString(error)));
        }
        assert_eq!(ours, yours);
    }
}
