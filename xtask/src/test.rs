//! `cargo xtask test`: everything that CI checks by running it, on a machine with nothing but Rust.

use std::path::Path;

use anyhow::Result;
use xshell::{Shell, cmd};

use crate::model;

/// Fetches the example's model, if it can be had, and runs every test.
pub(crate) fn run(root: &Path) -> Result<()> {
    let shell = Shell::new()?;
    shell.change_dir(root);
    if let Err(why) = model::run(root) {
        // The tests that want it skip, and say so.
        crate::say(&format!("the tests of the example's model will be skipped: {why:#}"));
    }
    cmd!(shell, "cargo test --workspace --quiet").run()?;
    Ok(())
}
