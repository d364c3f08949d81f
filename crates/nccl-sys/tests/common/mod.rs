//! Libraries compiled from C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crossover_nccl_sys::Library;

/// `folder/name`, a library of this C, which calls itself `soname` if one is given. None where there
/// is no compiler, which is said.
pub(crate) fn library(
    folder: &Path,
    name: &str,
    soname: Option<&str>,
    source: &str,
) -> Option<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    let c = folder.join(format!("{name}.c"));
    fs::write(&c, source).unwrap();
    let library = folder.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&c);
    if let Some(soname) = soname {
        cc.arg(format!("-Wl,-soname,{soname}"));
    }
    match cc.status() {
        Ok(status) => {
            assert!(status.success());
            Some(library)
        }
        Err(why) => {
            eprintln!("skipped: no C compiler: {why}");
            None
        }
    }
}

/// C of a library of this version, as `ncclGetVersion` tells it, with all that is required.
pub(crate) fn whole(number: i32) -> String {
    let others: String =
        Library::REQUIRED.iter().filter(|it| **it != "ncclGetVersion").map(|it| stub(it)).collect();
    format!("{}{others}", version(number, 0))
}

/// C of `ncclGetVersion`.
pub(crate) fn version(number: i32, status: i32) -> String {
    format!("int ncclGetVersion(int *version) {{ *version = {number}; return {status}; }}\n")
}

/// C of a function that does nothing.
pub(crate) fn stub(symbol: &str) -> String {
    format!("int {symbol}(void) {{ return 0; }}\n")
}
