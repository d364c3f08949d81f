//! Layouts and numbers against the headers of an installed ROCm, of whichever release: a C program
//! prints what they say.

#![allow(clippy::print_stderr, reason = "says why the test skips")]

use std::collections::BTreeMap;
use std::fs;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use crossover_hip_sys::layout::*;

const PROGRAM: &str = r#"
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_HCC__ 1
#include <hip/hip_runtime_api.h>
#include <stddef.h>
#include <stdio.h>
#define SAY(name, value) printf("%s %lld\n", name, (long long)(value))
int main(void) {
  SAY("success", hipSuccess);
  SAY("invalid value", hipErrorInvalidValue);
  SAY("no device", hipErrorNoDevice);
  SAY("not ready", hipErrorNotReady);
  SAY("peer access already enabled", hipErrorPeerAccessAlreadyEnabled);
  SAY("l2 cache size", hipDeviceAttributeL2CacheSize);
  SAY("multiprocessor count", hipDeviceAttributeMultiprocessorCount);
  SAY("max threads", HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  SAY("shared bytes", HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  SAY("local bytes", HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  SAY("registers", HIP_FUNC_ATTRIBUTE_NUM_REGS);
  SAY("buffer id", HIP_POINTER_ATTRIBUTE_BUFFER_ID);
  SAY("device ordinal", HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  SAY("fine-grained", hipDeviceMallocFinegrained);
#ifdef hipDeviceMallocUncached
  SAY("uncached", hipDeviceMallocUncached);
#endif
  SAY("portable mapped", hipHostRegisterPortable | hipHostRegisterMapped);
  SAY("memcpy default", hipMemcpyDefault);
  SAY("non-blocking", hipStreamNonBlocking);
  SAY("capture thread-local", hipStreamCaptureModeThreadLocal);
  SAY("capture relaxed", hipStreamCaptureModeRelaxed);
  SAY("capture none", hipStreamCaptureStatusNone);
  SAY("capture active", hipStreamCaptureStatusActive);
  SAY("ipc handle", sizeof(hipIpcMemHandle_t));
  SAY("uuid", sizeof(hipUUID));
  SAY("location", sizeof(hipMemLocation));
  SAY("location id", offsetof(hipMemLocation, id));
  SAY("access", sizeof(hipMemAccessDesc));
  SAY("access flags", offsetof(hipMemAccessDesc, flags));
  SAY("pinned", hipMemAllocationTypePinned);
  SAY("posix fd", hipMemHandleTypePosixFileDescriptor);
  SAY("on a device", hipMemLocationTypeDevice);
  SAY("read and write", hipMemAccessFlagsProtReadWrite);
  SAY("recommended", hipMemAllocationGranularityRecommended);
  SAY("allocation", sizeof(hipMemAllocationProp));
#if HIP_VERSION_MAJOR >= 6
  SAY("lazy peer access", hipIpcMemLazyEnablePeerAccess);
  SAY("allocation handle types", offsetof(hipMemAllocationProp, requestedHandleType));
  SAY("allocation location", offsetof(hipMemAllocationProp, location));
  SAY("allocation win32", offsetof(hipMemAllocationProp, win32HandleMetaData));
  SAY("allocation flags", offsetof(hipMemAllocationProp, allocFlags));
  SAY("arch at, R0600", offsetof(hipDeviceProp_tR0600, gcnArchName));
#else
  SAY("arch at, R0000", offsetof(hipDeviceProp_t, gcnArchName));
#endif
  SAY("properties fit", sizeof(hipDeviceProp_t) <= 4096);
  return 0;
}
"#;

#[test]
fn layouts_are_those_of_the_headers() {
    let Some(said) = said_by_headers() else { return };
    let number = |value: i32| i64::from(value);
    let ours = BTreeMap::from([
        ("success", number(SUCCESS)),
        ("invalid value", number(INVALID_VALUE)),
        ("no device", number(NO_DEVICE)),
        ("not ready", number(NOT_READY)),
        ("peer access already enabled", number(PEER_ACCESS_ALREADY_ENABLED)),
        ("l2 cache size", number(ATTRIBUTE_L2_CACHE_SIZE)),
        ("multiprocessor count", number(ATTRIBUTE_MULTIPROCESSOR_COUNT)),
        ("max threads", number(FUNCTION_MAX_THREADS)),
        ("shared bytes", number(FUNCTION_SHARED_BYTES)),
        ("local bytes", number(FUNCTION_LOCAL_BYTES)),
        ("registers", number(FUNCTION_REGISTERS)),
        ("buffer id", number(POINTER_BUFFER_ID)),
        ("device ordinal", number(POINTER_DEVICE_ORDINAL)),
        ("fine-grained", i64::from(MALLOC_FINE_GRAINED)),
        ("uncached", i64::from(MALLOC_UNCACHED)),
        ("portable mapped", i64::from(HOST_REGISTER_PORTABLE_MAPPED)),
        ("memcpy default", number(MEMCPY_DEFAULT)),
        ("lazy peer access", i64::from(IPC_LAZY_ENABLE_PEER_ACCESS)),
        ("non-blocking", i64::from(STREAM_NON_BLOCKING)),
        ("capture thread-local", number(CAPTURE_THREAD_LOCAL)),
        ("capture relaxed", number(CAPTURE_RELAXED)),
        ("capture none", number(CAPTURE_NONE)),
        ("capture active", number(CAPTURE_ACTIVE)),
        ("ipc handle", size_of::<IpcMemHandle>() as i64),
        ("uuid", size_of::<Uuid>() as i64),
        ("location", size_of::<MemLocation>() as i64),
        ("location id", offset_of!(MemLocation, id) as i64),
        ("access", size_of::<MemAccessDesc>() as i64),
        ("access flags", offset_of!(MemAccessDesc, flags) as i64),
        ("pinned", number(ALLOCATION_PINNED)),
        ("posix fd", number(HANDLE_POSIX_FD)),
        ("on a device", number(LOCATION_DEVICE)),
        ("read and write", number(ACCESS_READ_WRITE)),
        ("recommended", number(GRANULARITY_RECOMMENDED)),
        ("allocation", size_of::<MemAllocationProp>() as i64),
        ("allocation handle types", offset_of!(MemAllocationProp, requested_handle_types) as i64),
        ("allocation location", offset_of!(MemAllocationProp, location) as i64),
        ("allocation win32", offset_of!(MemAllocationProp, win32_handle_meta_data) as i64),
        ("allocation flags", offset_of!(MemAllocationProp, compression) as i64),
        ("arch at, R0600", R0600_ARCH_AT as i64),
        ("arch at, R0000", R0000_ARCH_AT as i64),
        ("properties fit", 1),
    ]);
    for line in said.lines() {
        let (name, value) = line.rsplit_once(' ').expect("a name and a number");
        assert_eq!(ours.get(name).copied(), value.parse().ok(), "{name}");
    }
    assert!(said.lines().count() >= 35, "{said}");
}

/// What the program prints, where there are headers and a compiler.
fn said_by_headers() -> Option<String> {
    let folders = ["/opt/rocm/include", "/usr/include"];
    let has = |folder: &&&str| Path::new(folder).join("hip/hip_runtime_api.h").exists();
    let Some(include) = folders.iter().find(has) else {
        eprintln!("skipped: no HIP headers (Debian: libamdhip64-dev)");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("say.c");
    let program = folder.path().join("say");
    fs::write(&source, PROGRAM).unwrap();
    let built =
        Command::new("cc").arg("-I").arg(include).arg("-o").arg(&program).arg(&source).output();
    let built = match built {
        Ok(built) => built,
        Err(why) => {
            eprintln!("skipped: no C compiler: {why}");
            return None;
        }
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let said = Command::new(&program).output().unwrap();
    assert!(said.status.success());
    Some(String::from_utf8(said.stdout).unwrap())
}
