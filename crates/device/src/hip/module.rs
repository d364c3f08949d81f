//! Kernel images, kernels and launches.

use std::collections::HashMap;
use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use crossover_hip_sys::layout::{
    FUNCTION_LOCAL_BYTES, FUNCTION_MAX_THREADS, FUNCTION_REGISTERS, FUNCTION_SHARED_BYTES,
};

use crate::driver::{FunctionUse, Handle, Launch};
use crate::error::DeviceError;
use crate::hip::api::{Api, number, pointer};
use crate::hip::capture::Relaxed;

/// Images by module. HIP reads an image when a kernel is first looked up, not when it is loaded, so
/// each is kept here until its module is unloaded; in words of 16 bytes for its alignment.
#[derive(Default)]
pub(super) struct Images(Mutex<HashMap<u64, Box<[u128]>>>);

/// How a code object begins: an ELF file, or a bundle of them, perhaps compressed.
const BEGINNINGS: [&[u8]; 3] = [b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"];

pub(super) fn load(api: &Api, images: &Images, image: &[u8]) -> Result<Handle, DeviceError> {
    // HIP finds an image's end by its contents: what is none would be read past its end.
    if !BEGINNINGS.iter().any(|beginning| image.starts_with(beginning)) {
        return Err(DeviceError::Invalid(
            "the kernel image is no AMD code object: it begins like none".into(),
        ));
    }
    let _relaxed = Relaxed::enter(api)?;
    let kept = aligned(image);
    let mut module = null_mut();
    // SAFETY: a place for one module, and an image that stays.
    let status = unsafe { (api.calls().module_load_data)(&raw mut module, kept.as_ptr().cast()) };
    api.check("hipModuleLoadData", status)?;
    let module = number(module);
    images.0.lock().unwrap_or_else(PoisonError::into_inner).insert(module, kept);
    Ok(Handle(module))
}

fn aligned(image: &[u8]) -> Box<[u128]> {
    let words = image.chunks(16).map(|chunk| {
        let mut word = [0; 16];
        word[..chunk.len()].copy_from_slice(chunk);
        u128::from_ne_bytes(word)
    });
    words.collect()
}

pub(super) fn unload(api: &Api, images: &Images, module: Handle) -> Result<(), DeviceError> {
    let _relaxed = Relaxed::enter(api)?;
    // SAFETY: a module that `load` gave.
    let status = unsafe { (api.calls().module_unload)(pointer(module.0)) };
    api.check("hipModuleUnload", status)?;
    images.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&module.0);
    Ok(())
}

pub(super) fn function(api: &Api, module: Handle, name: &str) -> Result<Handle, DeviceError> {
    let Ok(name) = CString::new(name) else {
        return Err(DeviceError::Invalid(format!("`{}` names no kernel", name.escape_debug())));
    };
    let _relaxed = Relaxed::enter(api)?;
    let mut function = null_mut();
    // SAFETY: a place for one function, a module that `load` gave, and a text that ends.
    let status = unsafe {
        (api.calls().module_get_function)(&raw mut function, pointer(module.0), name.as_ptr())
    };
    api.check("hipModuleGetFunction", status)?;
    Ok(Handle(number(function)))
}

pub(super) fn usage(api: &Api, function: Handle) -> Result<FunctionUse, DeviceError> {
    let attribute = |attribute| {
        let mut value: c_int = 0;
        // SAFETY: a place for one number, and a function that `function` gave.
        let status = unsafe {
            (api.calls().func_get_attribute)(&raw mut value, attribute, pointer(function.0))
        };
        api.check("hipFuncGetAttribute", status)?;
        Ok::<_, DeviceError>(u32::try_from(value).unwrap_or(0))
    };
    Ok(FunctionUse {
        registers: attribute(FUNCTION_REGISTERS)?,
        local: attribute(FUNCTION_LOCAL_BYTES)?,
        shared: attribute(FUNCTION_SHARED_BYTES)?,
        threads: attribute(FUNCTION_MAX_THREADS)?,
    })
}

pub(super) fn occupancy(api: &Api, function: Handle, threads: u32) -> Result<u32, DeviceError> {
    let mut blocks: c_int = 0;
    let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
    // SAFETY: a place for one number, and a function that `function` gave.
    let status =
        unsafe { (api.calls().module_occupancy)(&raw mut blocks, pointer(function.0), threads, 0) };
    api.check("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", status)?;
    Ok(u32::try_from(blocks).unwrap_or(0))
}

/// # Safety
/// The bytes are the kernel's parameter, and what they point at is valid until it ends.
#[inline]
pub(super) unsafe fn launch(
    api: &Api,
    launch: &Launch,
    parameter: &[u8],
) -> Result<(), DeviceError> {
    const NO_DYNAMIC_SHARED: u32 = 0;
    let mut parameters = [parameter.as_ptr().cast_mut().cast()];
    // SAFETY: the caller's kernel and parameter, which HIP copies before it returns and does not
    // write.
    let status = unsafe {
        (api.calls().module_launch_kernel)(
            pointer(launch.function.0),
            launch.blocks,
            1,
            1,
            launch.threads,
            1,
            1,
            NO_DYNAMIC_SHARED,
            pointer(launch.stream),
            parameters.as_mut_ptr(),
            null_mut(),
        )
    };
    api.check("hipModuleLaunchKernel", status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_kept_whole() {
        for length in [0, 1, 15, 16, 17, 100] {
            let image: Vec<u8> = (0..length).collect();
            let words = aligned(&image);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!(bytes[..image.len()], image);
            assert!(bytes[image.len()..].iter().all(|&byte| byte == 0));
        }
    }
}
