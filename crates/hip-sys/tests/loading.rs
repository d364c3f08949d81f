//! Finding a runtime: absent, not one, and one without a device.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use std::ffi::CStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crossover_hip_sys::layout::{NO_DEVICE, SUCCESS};
use crossover_hip_sys::{Hip, LoadError};

#[test]
fn an_absent_library_is_told_with_the_loaders_reason() {
    let error = Hip::load(Some(Path::new("/nowhere/libamdhip64.so"))).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("no HIP runtime: /nowhere/libamdhip64.so: "), "{text}");
    assert!(text.contains("No such file"), "{text}");
}

#[test]
fn a_missing_function_is_named() {
    // Every symbol that comes before it in the table is there.
    let stub =
        "const char *hipGetErrorString(int s) { return \"\"; } int hipGetLastError() { return 0; }";
    let Some(folder) = library("stub", stub) else { return };
    let path = folder.path().join("stub.so");
    let error = Hip::load(Some(&path)).unwrap_err();
    let library = path.display().to_string();
    assert_eq!(error, LoadError::Lacks { library, symbol: "hipRuntimeGetVersion" });
    assert!(error.to_string().ends_with("it has no `hipRuntimeGetVersion`"), "{error}");
}

#[test]
fn a_runtime_without_a_device_says_so() {
    let hip = match Hip::load(None) {
        Ok(hip) => hip,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    assert!((5..100).contains(&hip.version.0), "{:?}", hip.version);
    assert_eq!(hip.vmm.is_some(), hip.version.0 >= 6);
    let mut devices = -1;
    // SAFETY: the pointer is valid for the call.
    let status = unsafe { (hip.calls.get_device_count)(&raw mut devices) };
    match status {
        SUCCESS => assert!(devices > 0),
        _ => assert_eq!(status, NO_DEVICE),
    }
    // SAFETY: HIP's texts are constants of the library.
    let text = unsafe { CStr::from_ptr((hip.calls.get_error_string)(NO_DEVICE)) };
    assert!(!text.is_empty());
}

#[test]
fn a_second_load_finds_the_same_library() {
    let (Ok(first), Ok(second)) = (Hip::load(None), Hip::load(None)) else {
        return eprintln!("skipped: no HIP runtime");
    };
    assert_eq!(first.library, second.library);
    assert!(std::ptr::fn_addr_eq(first.calls.free, second.calls.free));
}

/// A folder with `NAME.so`, compiled from C.
fn library(name: &str, source: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let c = folder.path().join("source.c");
    fs::write(&c, source).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(folder.path().join(format!("{name}.so")))
        .arg(&c)
        .status();
    match built {
        Ok(status) => {
            assert!(status.success());
            Some(folder)
        }
        Err(why) => {
            eprintln!("skipped: no C compiler: {why}");
            None
        }
    }
}
