//! Kernels: their images, what the compiler made of them, and launching.

use std::ffi::{CString, c_int, c_void};

use cudarc::driver::sys::{
    CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT,
    CU_LAUNCH_PARAM_END_AS_INT, CUfunction_attribute as Attribute, CUlaunchAttribute,
    CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig,
};

use crate::cuda::api::Api;
use crate::cuda::capture::Relaxed;
use crate::cuda::{Cuda, context, image, number, pointer};
use crate::driver::{FunctionUse, Handle, Launch};
use crate::error::DeviceError;

pub(super) fn load(api: &Api, image: &[u8]) -> Result<Handle, DeviceError> {
    image::check(image)?;
    let _relaxed = Relaxed::enter(api)?;
    let mut module = std::ptr::null_mut();
    // SAFETY: a place for one module, and an image that is as long as it says.
    unsafe { api.cuModuleLoadData(&mut module, image.as_ptr().cast()) }?;
    Ok(Handle(number(module)))
}

pub(super) fn unload(api: &Api, module: Handle) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: a module that `load` gave.
    unsafe { api.cuModuleUnload(pointer(module.0)) }
}

pub(super) fn function(api: &Api, module: Handle, name: &str) -> Result<Handle, DeviceError> {
    let Ok(terminated) = CString::new(name) else {
        return Err(DeviceError::Invalid(format!("`{name:?}` is no name of a kernel")));
    };
    let _relaxed = Relaxed::enter(api)?;
    let mut function = std::ptr::null_mut();
    // SAFETY: a place for one function, a module that `load` gave, and a C string.
    unsafe { api.cuModuleGetFunction(&mut function, pointer(module.0), terminated.as_ptr()) }?;
    // Its code is loaded now and not by its first launch, which may be within a recording.
    attribute(api, Handle(number(function)), Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
    Ok(Handle(number(function)))
}

pub(super) fn function_use(api: &Api, function: Handle) -> Result<FunctionUse, DeviceError> {
    Ok(FunctionUse {
        registers: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        local: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        shared: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        threads: attribute(api, function, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
    })
}

pub(super) fn occupancy(api: &Api, function: Handle, threads: u32) -> Result<u32, DeviceError> {
    let Ok(threads) = c_int::try_from(threads) else {
        return Err(DeviceError::Invalid(format!("a block cannot have {threads} threads")));
    };
    let mut blocks = 0;
    // SAFETY: a place for one number, and a function that `function` gave.
    unsafe {
        api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut blocks,
            pointer(function.0),
            threads,
            0,
        )
    }?;
    Ok(blocks.unsigned_abs())
}

/// # Safety
/// The bytes are the kernel's parameter, and what they point at is valid until it ends.
#[inline]
pub(super) unsafe fn launch(
    cuda: &Cuda,
    launch: &Launch,
    parameter: &[u8],
) -> Result<(), DeviceError> {
    let early =
        launch.programmatic && (cuda.programmatic || context::current_is_programmatic(&cuda.api)?);
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    value.programmaticStreamSerializationAllowed = 1;
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value,
    };
    let config = CUlaunchConfig {
        gridDimX: launch.blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: launch.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: pointer(launch.stream),
        attrs: &mut attribute,
        numAttrs: early.into(),
    };
    // As a buffer with its length, so that the driver reads no further.
    let mut bytes = parameter.len();
    let mut extra: [*mut c_void; 5] = [
        pointer(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT.into()),
        parameter.as_ptr().cast_mut().cast(),
        pointer(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT.into()),
        (&raw mut bytes).cast(),
        pointer(CU_LAUNCH_PARAM_END_AS_INT.into()),
    ];
    let function = pointer(launch.function.0);
    // SAFETY: the caller's promise; all that is pointed at lives here, and the driver copies it.
    unsafe {
        cuda.api.cuLaunchKernelEx(&config, function, std::ptr::null_mut(), extra.as_mut_ptr())
    }
}

fn attribute(api: &Api, function: Handle, attribute: Attribute) -> Result<u32, DeviceError> {
    let mut value = 0;
    // SAFETY: a place for one number, and a function that `function` gave.
    unsafe { api.cuFuncGetAttribute(&mut value, attribute, pointer(function.0)) }?;
    Ok(value.unsigned_abs())
}
