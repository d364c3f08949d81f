//! Builds and loads `runtime.c`.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::hip::Hip;

/// One whose oddities differ from the others'.
pub(super) struct Release {
    /// As it says itself.
    number: &'static str,
    /// As the driver should tell it.
    pub(super) version: &'static str,
    /// Has it virtual memory that can be exported?
    pub(super) vmm: bool,
}

pub(super) const RELEASES: [Release; 4] = [
    Release { number: "70253210", version: "7.2", vmm: true },
    Release { number: "60342134", version: "6.3", vmm: true },
    Release { number: "50731921", version: "5.7", vmm: false },
    Release { number: "50221153", version: "5.2", vmm: false },
];

pub(super) fn each_release(test: impl Fn(&Hip, &Release)) {
    for release in &RELEASES {
        with(release, |hip| test(hip, release));
    }
}

/// Runs a test with a runtime of its own, which the fake's state is part of: each loads its own copy
/// of the file.
pub(super) fn with(release: &Release, test: impl FnOnce(&Hip)) {
    let Some(library) = built(release) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libamdhip64.so");
    fs::write(&path, library).unwrap();
    test(&Hip::load(Some(&path)).unwrap());
}

/// The library's bytes, compiled once; none where there is no compiler.
fn built(release: &Release) -> Option<Vec<u8>> {
    static BUILT: Mutex<BTreeMap<&str, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let mut libraries = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = libraries.get(release.number) {
        return Some(library.clone());
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("runtime.c");
    let path = folder.path().join("runtime.so");
    fs::write(&source, include_str!("runtime.c")).unwrap();
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .arg(format!("-DVERSION={}", release.number))
        .arg("-o")
        .arg(&path)
        .arg(&source)
        .output();
    let built = match built {
        Ok(built) => built,
        Err(why) => {
            say(&format!("skipped: it needs a C compiler: {why}"));
            return None;
        }
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let library = fs::read(&path).unwrap();
    libraries.insert(release.number, library.clone());
    Some(library)
}

pub(super) fn say(text: &str) {
    eprintln!("{text}");
}
