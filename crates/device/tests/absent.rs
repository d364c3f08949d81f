//! Where there is no CUDA driver, or none that serves, a sentence says so. Drivers that do not
//! serve are made of C: a program loads its driver once, so each is tried by this test program
//! started once more.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use std::path::Path;
use std::process::Command;

use crossover_device::error::DeviceError;

/// Tells the program started once more that it is one.
const CHILD: &str = "CROSSOVER_TEST_STUB";

#[test]
fn a_missing_driver_is_a_sentence_and_no_panic() {
    // Either the library is not there, or it sees no device: each says what to do.
    for (name, library, visible) in [
        ("cuda:0", "libcuda.so.1", "CUDA_VISIBLE_DEVICES"),
        ("hip:0", "libamdhip64.so", "HIP_VISIBLE_DEVICES"),
    ] {
        if let Some(said) = absent(name) {
            assert!(said.contains(library) || said.contains(visible), "{said}");
        }
    }
}

/// What is said where a device cannot be had; `None`, said aloud, where it can.
fn absent(name: &str) -> Option<String> {
    match crossover_device::open(name) {
        Ok(device) => eprintln!("skipped: {device} is here, and the test needs none"),
        Err(DeviceError::Absent(said)) => {
            assert!(!said.contains('\n'), "one sentence: {said}");
            return Some(said);
        }
        Err(other) => panic!("an absent driver is Absent, not {other:?}"),
    }
    None
}

#[test]
fn asking_again_says_the_same() {
    let [first, second] = [(); 2].map(|()| crossover_device::open("cuda").map(|_| ()));
    assert_eq!(first, second);
}

#[test]
fn a_driver_without_a_function_is_too_old() {
    let Some(said) = said_with("int cuInit(unsigned flags) { return 0; }") else { return };
    assert!(said.contains("too old: it has no cu") && said.contains("CUDA 12.0"), "{said}");
}

#[test]
fn a_driver_of_an_older_cuda_is_too_old() {
    let Some(said) = said_with(&driver(11_080, 0)) else { return };
    assert!(said.contains("is of CUDA 11.8") && said.contains("update"), "{said}");
}

#[test]
fn a_driver_without_a_device_says_so_in_the_vendors_words() {
    let Some(said) = said_with(&driver(12_040, 100)) else { return };
    assert!(said.contains("cuInit failed: words of 100 (100)"), "{said}");
    assert!(said.contains("CUDA_VISIBLE_DEVICES"), "{said}");
}

#[test]
fn a_status_that_nobody_knows_is_told_as_a_number() {
    let Some(said) = said_with(&driver(13_000, 4242)) else { return };
    assert!(said.contains("no words for (4242)"), "{said}");
}

#[test]
fn a_driver_that_sees_no_device_after_all_has_none_to_open() {
    let Some(said) = said_with(&driver(13_000, 0)) else { return };
    assert_eq!(said, "there is no device cuda:0: this process sees 0");
}

/// Not a test by itself: what the program started once more does.
#[test]
fn the_child() {
    if std::env::var_os(CHILD).is_some() {
        let said = crossover_device::open("cuda:0").map(|_| ()).unwrap_err();
        eprintln!("said: {said}");
    }
}

/// A driver of a version, whose `cuInit` has a status, and which has words for the vendor's
/// statuses alone.
fn driver(version: u32, status: u32) -> String {
    let words = "int cuGetErrorString(int code, const char **text) {
        static char words[32];
        if (code > 999) return 1;
        snprintf(words, sizeof words, \"words of %d\", code);
        *text = words;
        return 0;
    }";
    let mut source = format!(
        "#include <stdio.h>\n{words}\nint cuDriverGetVersion(int *to) {{ *to = {version}; return 0; }}\n\
         int cuInit(unsigned flags) {{ return {status}; }}\n\
         int cuDeviceGetCount(int *to) {{ *to = 0; return 0; }}\n"
    );
    let written = ["cuGetErrorString", "cuDriverGetVersion", "cuInit", "cuDeviceGetCount"];
    for line in include_str!("../src/cuda/api.rs").lines() {
        let name = line.trim_start().strip_prefix("fn cu").and_then(|rest| rest.split_once('('));
        if let Some((name, _)) = name.filter(|(name, _)| !written.contains(&&*format!("cu{name}")))
        {
            source += &format!("int cu{name}(void) {{ return 1; }}\n");
        }
    }
    source
}

/// What is said with a driver of this C source; `None`, said aloud, where there is no compiler.
fn said_with(source: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    if let Err(why) = compile(source, folder.path()) {
        eprintln!("skipped: it needs a C compiler, `cc`: {why}");
        return None;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child", "--nocapture"])
        .env("LD_LIBRARY_PATH", folder.path())
        .env(CHILD, "1")
        .output()
        .unwrap();
    let all = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{all}");
    let said = all.lines().find_map(|line| line.split_once("said: ")).expect("the child speaks");
    Some(said.1.to_string())
}

fn compile(source: &str, folder: &Path) -> std::io::Result<()> {
    std::fs::write(folder.join("stub.c"), source)?;
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "libcuda.so", "stub.c"])
        .current_dir(folder)
        .output()?;
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "the stub does not compile: {said}");
    Ok(())
}
