//! Finding a library: absent, not one, lacking something, of odd versions.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use std::fs;
use std::path::Path;

use crossover_nccl_sys::{Float8, Library, LoadError, Vendor, Version};

mod common;

// These are called what no search finds, so that each is the only copy in this process.
const NAME: &str = "stub.so";

#[test]
fn an_absent_library_is_told_with_the_loaders_reason() {
    let error = Library::load(Some(Path::new("/nowhere/libnccl.so.2")), Vendor::Nccl).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("no NCCL: /nowhere/libnccl.so.2: "), "{text}");
    assert!(text.contains("No such file"), "{text}");
    assert_eq!(text.matches("/nowhere/libnccl.so.2").count(), 1, "{text}");
}

#[test]
fn every_name_that_was_tried_is_told() {
    match Library::load(None, Vendor::Rccl) {
        Ok(library) => eprintln!("skipped: there is {}", library.path.display()),
        Err(LoadError::Absent { tried, .. }) => {
            let names: Vec<_> = tried.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, Vendor::Rccl.names());
            let text = LoadError::Absent { vendor: Vendor::Rccl, tried }.to_string();
            assert!(text.contains("librccl.so.1: cannot open shared object file"), "{text}");
            assert!(text.ends_with("Install RCCL, or say where it is"), "{text}");
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_file_that_is_no_library_is_told_with_the_loaders_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    fs::write(&path, "a text that is longer than the header of a library would be, and no library")
        .unwrap();
    let text = Library::load(Some(&path), Vendor::Nccl).unwrap_err().to_string();
    assert!(text.contains("invalid ELF header"), "{text}");
}

#[test]
fn what_the_library_itself_lacks_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let source = format!(
        "int cudaOfALaterDriver(void);
         int used(void) {{ return cudaOfALaterDriver(); }}\n{}",
        common::whole(22501)
    );
    let Some(path) = common::library(folder.path(), NAME, None, &source) else { return };
    let text = Library::load(Some(&path), Vendor::Nccl).unwrap_err().to_string();
    assert!(text.contains("undefined symbol: cudaOfALaterDriver"), "{text}");
}

#[test]
fn missing_functions_are_all_named_with_the_file_and_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let lacking = ["ncclCommFinalize", "ncclCommInitRankConfig"];
    let source = common::whole(21304).replace("int ncclCommFinalize(", "int other(");
    let source = source.replace("int ncclCommInitRankConfig(", "int another(");
    let Some(path) = common::library(folder.path(), NAME, None, &source) else { return };
    let error = Library::load(Some(&path), Vendor::Nccl).unwrap_err();
    let LoadError::Lacks { version, symbols, .. } = &error else { panic!("{error}") };
    assert_eq!(*version, Some(Version::new(2, 13, 4)));
    assert!(lacking.iter().all(|it| symbols.contains(it)) && symbols.len() == 2, "{symbols:?}");
    let text = error.to_string();
    assert!(text.starts_with(&path.canonicalize().unwrap().display().to_string()), "{text}");
    assert!(
        text.contains("it is version 2.13.4, and it has no `ncclCommInitRankConfig`"),
        "{text}"
    );
}

#[test]
fn a_library_of_another_kind_is_told_by_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let source = common::stub("unrelated");
    let Some(path) = common::library(folder.path(), NAME, None, &source) else { return };
    let text = Library::load(Some(&path), Vendor::Rccl).unwrap_err().to_string();
    assert!(
        text.contains("is no RCCL that this program can use: it has no `ncclGetVersion`"),
        "{text}"
    );
}

#[test]
fn a_version_that_no_release_tells_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, number, status) in
        [("zero.so", 0, 0), ("huge.so", 7_000_000, 0), ("bad.so", 22501, 3)]
    {
        let source = common::version(number, status);
        let Some(path) = common::library(folder.path(), name, None, &source) else { return };
        let error = Library::load(Some(&path), Vendor::Nccl).unwrap_err();
        let text = error.to_string();
        let told = format!("ncclGetVersion returned {status} and wrote {number}");
        assert!(text.contains(name) && text.ends_with(&told), "{text}");
    }
}

#[test]
fn what_is_optional_may_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let source = common::whole(21903) + &common::stub("ncclMemAlloc");
    let Some(path) = common::library(folder.path(), NAME, None, &source) else { return };
    let library = Library::load(Some(&path), Vendor::Nccl).unwrap();
    assert_eq!(library.version, Version::new(2, 19, 3));
    assert_eq!(library.path, path.canonicalize().unwrap());
    assert!(library.optional.mem_alloc.is_some());
    assert!(library.optional.comm_window_register.is_none());
    let missing = library.optional.missing();
    assert!(missing.contains(&"ncclCommWindowRegister"), "{missing:?}");
    assert!(!missing.contains(&"ncclMemAlloc"), "{missing:?}");
}

#[test]
fn floats_of_8_bits_depend_on_the_vendor_and_the_release() {
    let folder = tempfile::tempdir().unwrap();
    for (name, number, vendor, float8) in [
        ("a.so", 22304, Vendor::Nccl, Float8::Absent),
        ("b.so", 22403, Vendor::Nccl, Float8::Standard),
        ("c.so", 21806, Vendor::Rccl, Float8::Absent),
        ("d.so", 22105, Vendor::Rccl, Float8::ByDevice),
    ] {
        let source = common::whole(number);
        let Some(path) = common::library(folder.path(), name, None, &source) else { return };
        assert_eq!(Library::load(Some(&path), vendor).unwrap().float8(), float8, "{name}");
    }
}
