//! `cargo xtask mpi`: a real MPI library with its header and launcher, for the tests of backend-mpi.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Pinned, with hashes.
const PACKAGE: &str = include_str!("requirements.txt");
/// [`PACKAGE`], beside what was fetched by it.
const LIST: &str = "requirements.txt";
/// The version in [`PACKAGE`]; `tests/src/mpi.rs` looks for it.
const VERSION: &str = "5.0.2";

/// Fetches 13 MB and keeps 37 MB of it, or does nothing where it is already there.
///
/// # Errors
///
/// It cannot be had: one sentence with what it takes.
pub(crate) fn run(root: &Path) -> Result<()> {
    let whole = root.join(format!("target/toolchains/mpich-{VERSION}"));
    if fs::read_to_string(whole.join(LIST)).is_ok_and(|list| list == PACKAGE) {
        return Ok(());
    }
    crate::say(&format!("fetching MPICH {VERSION} into {}", whole.display()));
    let part = root.join(format!("target/toolchains/mpich-{VERSION}-part"));
    for old in [&part, &whole] {
        if old.exists() {
            fs::remove_dir_all(old)?; // a fetch that was broken off, or of another package
        }
    }
    fs::create_dir_all(&part)?;
    let list = part.join(LIST);
    fs::write(&list, PACKAGE)?;
    unpack(&download(&list, &part.join("wheel"))?, &part.join("unpacked"))?;
    for kept in ["bin", "include", "lib"] {
        let from = part.join(format!("unpacked/mpich-{VERSION}.data/data/{kept}"));
        fs::rename(&from, part.join(kept))
            .with_context(|| format!("the package has no {}", from.display()))?;
    }
    for program in fs::read_dir(part.join("bin"))? {
        fs::set_permissions(program?.path(), fs::Permissions::from_mode(0o755))?;
    }
    fs::remove_dir_all(part.join("wheel"))?;
    fs::remove_dir_all(part.join("unpacked"))?;
    fs::rename(&part, &whole)?;
    Ok(())
}

/// The package itself: what pip would install of it into a folder lacks the libraries.
fn download(list: &Path, folder: &Path) -> Result<PathBuf> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "--require-hashes", "--retries", "2"]);
    pip.args(["--no-cache-dir", "-d"]).arg(folder).arg("-r").arg(list);
    quietly(&mut pip)?;
    let wheel = fs::read_dir(folder)?.next().context("pip has downloaded nothing")?;
    Ok(wheel?.path())
}

fn unpack(wheel: &Path, folder: &Path) -> Result<()> {
    quietly(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(folder))
}

fn quietly(python: &mut Command) -> Result<()> {
    let wanted = "MPICH cannot be fetched: it takes python3 with pip, and a package index";
    let output = python.output().context(wanted)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{wanted}: {}", said.lines().next_back().unwrap_or("no message").trim());
    }
    Ok(())
}
