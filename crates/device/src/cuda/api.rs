//! The functions of `libcuda` that this project calls, found once.
//!
//! cudarc declares them, and finds each when it is first called: it panics where one is missing,
//! and reads a status as a Rust `enum`, which a newer driver's status is not a value of. So the
//! pointers are taken from the library here, statuses are numbers, and the compiler holds each
//! declaration to cudarc's.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use cudarc::driver::sys;
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUgraph, CUgraphExec, CUipcMemHandle, CUlaunchConfig, CUmemAccessDesc,
    CUmemAllocationGranularity_flags, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemGenericAllocationHandle, CUmodule, CUpointer_attribute, CUstream, CUstreamCaptureMode,
    CUstreamCaptureStatus, CUuuid,
};

use crate::error::DeviceError;

/// The oldest driver served: `cuLaunchKernelEx` and all that is required below are in it.
const OLDEST: c_int = 12_000;

/// Declares the functions: each is a field with the pointer, whose call gives the bare status. Most
/// have a method too, which makes an error of it; those under `statuses` mean other things by
/// theirs.
macro_rules! functions {
    (
        errors {$(fn $name:ident($($arg:ident: $type:ty),* $(,)?);)*}
        statuses {$(fn $status:ident($($status_arg:ident: $status_type:ty),* $(,)?);)*}
    ) => {
        $(const _: unsafe fn($($type),*) -> sys::CUresult = sys::$name;)*
        $(const _: unsafe fn($($status_type),*) -> sys::CUresult = sys::$status;)*

        /// See the module.
        #[expect(non_snake_case, reason = "the vendor's names")]
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($type),*) -> c_int,)*
            $(pub(super) $status: unsafe extern "C" fn($($status_type),*) -> c_int,)*
            /// The UUID of the whole device where `cuDeviceGetUuid_v2` tells a MIG instance's.
            /// Drivers need not have it.
            pub(super) whole_uuid: Option<unsafe extern "C" fn(*mut CUuuid, CUdevice) -> c_int>,
        }

        #[expect(non_snake_case, reason = "the vendor's names")]
        impl Api {
            /// Finds them all.
            fn find() -> Result<Api, DeviceError> {
                Ok(Api {
                    $($name: find(stringify!($name))?,)*
                    $($status: find(stringify!($status))?,)*
                    whole_uuid: find("cuDeviceGetUuid").ok(),
                })
            }

            $(
                /// # Safety
                /// As the vendor's manual has it: pointers are valid for what the function does
                /// with them.
                #[inline]
                #[allow(clippy::too_many_arguments, reason = "the vendor's")]
                pub(super) unsafe fn $name(&self, $($arg: $type),*) -> Result<(), DeviceError> {
                    // SAFETY: the caller's promise; the declaration is cudarc's.
                    match unsafe { (self.$name)($($arg),*) } {
                        0 => Ok(()),
                        code => Err(self.failed(stringify!($name), code)),
                    }
                }
            )*
        }
    };
}

functions! {
    errors {
        fn cuInit(flags: c_uint);
        fn cuDriverGetVersion(version: *mut c_int);

        fn cuDeviceGetCount(count: *mut c_int);
        fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
        fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
        fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
        fn cuDeviceGetPCIBusId(id: *mut c_char, len: c_int, device: CUdevice);
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
        fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);

        fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
        fn cuDevicePrimaryCtxRelease_v2(device: CUdevice);
        fn cuCtxGetCurrent(context: *mut CUcontext);
        fn cuCtxSetCurrent(context: CUcontext);
        fn cuCtxGetDevice(device: *mut CUdevice);
        fn cuCtxSynchronize();

        fn cuMemAlloc_v2(pointer: *mut CUdeviceptr, bytes: usize);
        fn cuMemFree_v2(pointer: CUdeviceptr);
        fn cuMemHostRegister_v2(pages: *mut c_void, bytes: usize, flags: c_uint);
        fn cuMemHostGetDevicePointer_v2(
            pointer: *mut CUdeviceptr,
            pages: *mut c_void,
            flags: c_uint,
        );
        fn cuMemHostUnregister(pages: *mut c_void);
        fn cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
        fn cuMemsetD32Async(to: CUdeviceptr, word: c_uint, words: usize, stream: CUstream);
        fn cuPointerGetAttributes(
            count: c_uint,
            attributes: *mut CUpointer_attribute,
            data: *mut *mut c_void,
            pointer: CUdeviceptr,
        );

        fn cuIpcGetMemHandle(handle: *mut CUipcMemHandle, pointer: CUdeviceptr);
        fn cuIpcOpenMemHandle_v2(pointer: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint);
        fn cuIpcCloseMemHandle(pointer: CUdeviceptr);

        fn cuMemGetAllocationGranularity(
            bytes: *mut usize,
            prop: *const CUmemAllocationProp,
            option: CUmemAllocationGranularity_flags,
        );
        fn cuMemCreate(
            handle: *mut CUmemGenericAllocationHandle,
            bytes: usize,
            prop: *const CUmemAllocationProp,
            flags: c_ulonglong,
        );
        fn cuMemRelease(handle: CUmemGenericAllocationHandle);
        fn cuMemAddressReserve(
            pointer: *mut CUdeviceptr,
            bytes: usize,
            alignment: usize,
            wish: CUdeviceptr,
            flags: c_ulonglong,
        );
        fn cuMemAddressFree(pointer: CUdeviceptr, bytes: usize);
        fn cuMemMap(
            pointer: CUdeviceptr,
            bytes: usize,
            offset: usize,
            handle: CUmemGenericAllocationHandle,
            flags: c_ulonglong,
        );
        fn cuMemUnmap(pointer: CUdeviceptr, bytes: usize);
        fn cuMemSetAccess(
            pointer: CUdeviceptr,
            bytes: usize,
            access: *const CUmemAccessDesc,
            count: usize,
        );
        fn cuMemExportToShareableHandle(
            shareable: *mut c_void,
            handle: CUmemGenericAllocationHandle,
            kind: CUmemAllocationHandleType,
            flags: c_ulonglong,
        );
        fn cuMemImportFromShareableHandle(
            handle: *mut CUmemGenericAllocationHandle,
            shareable: *mut c_void,
            kind: CUmemAllocationHandleType,
        );
        fn cuMemRetainAllocationHandle(
            handle: *mut CUmemGenericAllocationHandle,
            pointer: *mut c_void,
        );

        fn cuStreamCreate(stream: *mut CUstream, flags: c_uint);
        fn cuStreamDestroy_v2(stream: CUstream);
        fn cuStreamSynchronize(stream: CUstream);
        fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
        fn cuEventCreate(event: *mut CUevent, flags: c_uint);
        fn cuEventDestroy_v2(event: CUevent);
        fn cuEventRecord(event: CUevent, stream: CUstream);
        fn cuEventElapsedTime(milliseconds: *mut f32, from: CUevent, to: CUevent);

        fn cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus);
        fn cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
        fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
        fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);
        fn cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
        fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
        fn cuGraphExecDestroy(exec: CUgraphExec);
        fn cuGraphDestroy(graph: CUgraph);

        fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
        fn cuModuleUnload(module: CUmodule);
        fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
        fn cuFuncGetAttribute(
            value: *mut c_int,
            attribute: CUfunction_attribute,
            function: CUfunction,
        );
        fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
            blocks: *mut c_int,
            function: CUfunction,
            threads: c_int,
            shared: usize,
        );
        fn cuLaunchKernelEx(
            config: *const CUlaunchConfig,
            function: CUfunction,
            parameters: *mut *mut c_void,
            extra: *mut *mut c_void,
        );
    }
    statuses {
        fn cuGetErrorString(error: sys::CUresult, text: *mut *const c_char);
        fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
        fn cuStreamQuery(stream: CUstream);
    }
}

impl Api {
    /// Loads the library, and makes it ready.
    pub(super) fn load() -> Result<Api, DeviceError> {
        // SAFETY: loading the vendor's library runs its initialisers, as any program that uses it
        // does.
        if !unsafe { sys::is_culib_present() } {
            return Err(DeviceError::Absent(absent()));
        }
        let api = Api::find()?;
        let mut version = 0;
        // SAFETY: a place for one number.
        unsafe { api.cuDriverGetVersion(&mut version) }?;
        if version < OLDEST {
            return Err(DeviceError::Absent(format!(
                "the CUDA driver is of CUDA {}, and Crossover needs one of CUDA {} or newer: \
                 update the NVIDIA driver",
                in_words(version),
                in_words(OLDEST)
            )));
        }
        // SAFETY: no pointer.
        unsafe { api.cuInit(0) }.map_err(|e| {
            DeviceError::Absent(format!(
                "the CUDA driver is there, but sees no device it can use: {e}; check that the \
                 machine or container has one, and CUDA_VISIBLE_DEVICES"
            ))
        })?;
        Ok(api)
    }

    /// A failed call, in words.
    #[cold]
    pub(super) fn failed(&self, call: &'static str, code: c_int) -> DeviceError {
        // The declaration's `enum` is passed as the number that it is in C: the status may be one
        // that cudarc does not know.
        type InWords = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: a C enum and an int are passed alike; the place is for one pointer.
        let known = unsafe {
            let in_words: InWords = std::mem::transmute(self.cuGetErrorString);
            in_words(code, &mut text) == 0 && !text.is_null()
        };
        let text = match known {
            // SAFETY: the library's own text, which it never frees.
            true => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
            false => "a status that the driver has no words for".into(),
        };
        DeviceError::Call { call, code, text }
    }
}

/// `12.4` for 12040.
pub(super) fn in_words(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn find<F: Copy>(name: &str) -> Result<F, DeviceError> {
    // SAFETY: the caller's type is the function's, held to cudarc's declaration; the library is
    // never unloaded.
    match unsafe { sys::culib().get::<F>(name.as_bytes()) } {
        Ok(symbol) => Ok(*symbol),
        Err(_) => Err(DeviceError::Absent(format!(
            "the CUDA driver is too old: it has no {name}; update it to one of CUDA {} or newer",
            in_words(OLDEST)
        ))),
    }
}

fn absent() -> String {
    // cudarc tries Windows' names too, and some twice.
    let mut names = cudarc::get_lib_name_candidates("cuda");
    names.retain(|name| !name.contains("64"));
    names.dedup();
    format!(
        "there is no CUDA driver here: none of {} can be loaded; install NVIDIA's driver, or give \
         the container access to it, and if it is in an unusual place name that in LD_LIBRARY_PATH",
        names.join(", ")
    )
}
