//! `cargo xtask nccl`: a real NCCL with its header, which the tests of nccl-sys hold themselves to.

pub(crate) mod rccl;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Pinned, with hashes.
const PACKAGE: &str = include_str!("requirements.txt");
/// [`PACKAGE`], beside what was fetched by it.
const LIST: &str = "requirements.txt";
/// The version in [`PACKAGE`].
const VERSION: &str = "2.32.3";

/// Fetches 305 MB and keeps 345 MB of it, or does nothing where it is already there.
///
/// # Errors
///
/// It cannot be had: one sentence with what it takes.
pub(crate) fn run(root: &Path) -> Result<()> {
    let whole = root.join(format!("target/toolchains/nccl-{VERSION}"));
    if fs::read_to_string(whole.join(LIST)).is_ok_and(|list| list == PACKAGE) {
        return Ok(());
    }
    crate::say(&format!("fetching NCCL {VERSION} into {}", whole.display()));
    let part = root.join(format!("target/toolchains/nccl-{VERSION}.part"));
    for old in [&part, &whole] {
        if old.exists() {
            fs::remove_dir_all(old)?; // a fetch that was broken off, or of another package
        }
    }
    let unpacked = part.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    let list = part.join(LIST);
    fs::write(&list, PACKAGE)?;
    install(&list, &unpacked)?;
    for kept in ["include", "lib"] {
        let from = unpacked.join("nvidia/nccl").join(kept);
        fs::rename(&from, part.join(kept))
            .with_context(|| format!("the package has no {}", from.display()))?;
    }
    fs::remove_dir_all(&unpacked)?;
    fs::rename(&part, &whole)?;
    Ok(())
}

fn install(list: &Path, folder: &Path) -> Result<()> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "--require-hashes", "--retries", "2"]);
    pip.args(["--no-cache-dir", "--no-compile", "--target"]).arg(folder).arg("-r").arg(list);
    let wanted = "NCCL cannot be fetched: it takes python3 with pip, and a package index";
    let output = pip.env("PIP_ROOT_USER_ACTION", "ignore").output().context(wanted)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{wanted}: {}", said.lines().next_back().unwrap_or("no message").trim());
    }
    Ok(())
}
