//! One copy of a library in a process. A single test: what is loaded stays so.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crossover_nccl_sys::{Library, LoadError, Vendor, Version};

mod common;

#[test]
fn a_process_has_one_copy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let copy = |within: &str, name: &str, soname: Option<&str>, number| {
        common::library(&folder.join(within), name, soname, &common::whole(number))
    };
    let soname = Some("libnccl.so.2");
    let Some(first) = copy("first", "libnccl.so.2", soname, 22501) else { return };
    let second = copy("second", "libnccl.so.2", soname, 22705).unwrap();
    let nccl = |explicit: Option<&Path>| Library::load(explicit, Vendor::Nccl);

    // The first that is asked for is had, and then by whatever name.
    let library = nccl(Some(&first)).unwrap();
    assert_eq!((&library.path, library.version), (&first, Version::new(2, 25, 1)));
    let link = folder.join("link.so");
    symlink(&first, &link).unwrap();
    for name in [None, Some(first.as_path()), Some(&link), Some(Path::new("libnccl.so.2"))] {
        let again = nccl(name).unwrap();
        assert_eq!(again.path, first, "{name:?}");
        assert!(std::ptr::fn_addr_eq(again.calls.send, library.calls.send), "{name:?}");
    }

    // Another is refused before it is loaded, and both are named.
    let error = nccl(Some(&second)).unwrap_err();
    let (asked, loaded) = (second.clone(), first.clone());
    assert_eq!(error, LoadError::OtherCopy { vendor: Vendor::Nccl, asked, loaded });
    let text = error.to_string();
    assert!(text.contains(first.to_str().unwrap()) && text.contains(second.to_str().unwrap()));
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains(first.to_str().unwrap()) && !maps.contains(second.to_str().unwrap()));
    // A bare name that is not loaded's stands for another file.
    assert!(matches!(nccl(Some(Path::new("libother.so"))), Err(LoadError::OtherCopy { .. })));

    // RCCL is another library. Its file may be called anything: it says itself what it is.
    let Some(custom) = copy("third", "collectives.so", Some("librccl.so.1"), 22105) else { return };
    let other = copy("fourth", "librccl.so.1", Some("librccl.so.1"), 22105).unwrap();
    let rccl = |explicit: Option<&Path>| Library::load(explicit, Vendor::Rccl);
    assert_eq!(rccl(Some(&custom)).unwrap().path, custom);
    assert_eq!(rccl(None).unwrap().path, custom);
    assert!(matches!(rccl(Some(&other)), Err(LoadError::OtherCopy { .. })));

    // A framework loads a second copy without asking: then only a name tells which is meant.
    // SAFETY: it has no initialisers.
    let framework = unsafe { libloading::Library::new(&second) }.unwrap();
    let error = nccl(None).unwrap_err();
    let LoadError::SeveralCopies { loaded, .. } = &error else { panic!("{error}") };
    assert!(loaded.len() == 2 && loaded.contains(&first) && loaded.contains(&second), "{error}");
    assert_eq!(nccl(Some(&first)).unwrap().path, first);
    assert_eq!(nccl(Some(&second)).unwrap().version, Version::new(2, 27, 5));
    drop(framework);
}
