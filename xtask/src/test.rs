//! `cargo xtask test`: everything that CI checks by running it, on a machine with nothing but Rust.

use std::path::Path;

use anyhow::Result;
use xshell::{Shell, cmd};

use crate::{kernels, model, mpi, nccl};

/// Fetches the example's model, a real MPI, a real NCCL and RCCL's header, and builds the kernels, where
/// they can be had, and runs every test.
pub(crate) fn run(root: &Path) -> Result<()> {
    let shell = Shell::new()?;
    shell.change_dir(root);
    if let Err(why) = model::run(root) {
        // The tests that want it skip, and say so.
        crate::say(&format!("the tests of the example's model will be skipped: {why:#}"));
    }
    if let Err(why) = nccl::run(root) {
        crate::say(&format!("the tests of NCCL's header and library will be skipped: {why:#}"));
    }
    if let Err(why) = nccl::rccl::header(root) {
        crate::say(&format!("the tests of RCCL's header will be skipped: {why:#}"));
    }
    if let Err(why) = mpi::run(root) {
        crate::say(&format!(
            "the tests of backend-mpi with an MPI library will be skipped: {why:#}"
        ));
    }
    kernels::for_tests(root)?;
    cmd!(shell, "cargo test --workspace --quiet").run()?;
    Ok(())
}
