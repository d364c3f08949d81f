//! An engine in C, on host memory.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

fn compile(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    support::library(folder);
    let program = folder.join("ranks");
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-o"])
        .arg(&program)
        .arg(root.join("tests/ranks.c"))
        .arg("-I")
        .arg(root.join("include"))
        .arg("-L")
        .arg(folder)
        .arg("-lcrossover")
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .output()
        .expect("cc can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn engines_in_c_get_what_they_ask_for_and_a_sentence_where_not() {
    if !support::is_there("cc", "the C engine") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path());
    for world in [1, 2, 3] {
        let rendezvous = format!("unix:{}/meet-{world}", folder.path().display());
        support::succeed((0..world).map(|rank: u32| {
            let mut command = Command::new(&program);
            command.args([rank.to_string(), world.to_string(), rendezvous.clone()]);
            command
        }));
    }
}

/// C++ is stricter about names and types.
#[test]
fn the_header_is_c_plus_plus_as_well() {
    if !support::is_there("c++", "C++") {
        return;
    }
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/crossover.h");
    let output = Command::new("c++")
        .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"])
        .arg(header)
        .output()
        .expect("c++ can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
