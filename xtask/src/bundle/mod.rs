//! `cargo xtask bundle`: a folder that a machine with a GPU and without Rust can run.
//!
//! Programs, tests and kernels lie beside one another, because programs look for kernels beside
//! themselves. `run.sh` tests and measures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::kernels;

/// Programs: package, binary.
const PROGRAMS: &[(&str, &str)] = &[("crossover-cli", "crossover")];
/// Tests that want a device: package, test.
const TESTS: &[(&str, &str)] =
    &[("crossover-device", "on_device"), ("crossover-tests", "device_ipc")];
const RUN: &str = include_str!("run.sh");

/// Fills `out` and packs it into `<out>.tar.xz`.
///
/// # Errors
///
/// No kernels were built yet, or something does not compile.
pub(crate) fn run(root: &Path, out: Option<&Path>, arches: &[String]) -> Result<()> {
    let default = root.join("target/bundle");
    let out = out.unwrap_or(&default);
    let arches = kernels::refresh(root, arches)?;
    ensure!(
        !arches.is_empty(),
        "no kernels are built: cargo xtask kernels cuda --arch sm90, or what the machine has"
    );
    ensure!(
        !out.exists() || out.join("run.sh").exists(),
        "{} is there and no bundle: name a folder of its own",
        out.display()
    );
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    fs::create_dir_all(out)?;
    for (package, name) in PROGRAMS {
        let built = executable(root, &["build", "--package", package, "--bin", name], name)?;
        strip(&built, &out.join(name))?;
    }
    for (package, name) in TESTS {
        let built =
            executable(root, &["test", "--no-run", "--package", package, "--test", name], name)?;
        strip(&built, &out.join(format!("test-{name}")))?;
    }
    for arch in arches {
        copy(&root.join("target/kernels").join(arch), &out.join("kernels").join(arch))?;
    }
    let script = out.join("run.sh");
    fs::write(&script, RUN)?;
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    pack(out)
}

/// Builds one target with optimisation; where it is.
fn executable(root: &Path, how: &[&str], name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(how).args(["--release", "--quiet", "--message-format", "json-render-diagnostics"]);
    let output = command.current_dir(root).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{name} cannot be built");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|message| message["target"]["name"] == name && message["executable"].is_string())
        .and_then(|message| message["executable"].as_str().map(PathBuf::from))
        .with_context(|| format!("cargo does not say where it built {name}"))
}

/// A program without what only a debugger reads.
fn strip(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("strip").arg("-o").arg(to).arg(from).status();
    ensure!(status.context("strip cannot be run: it is in binutils")?.success(), "strip failed");
    Ok(())
}

/// The files of a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn pack(out: &Path) -> Result<()> {
    let name = out.file_name().context("the bundle's folder has no name")?;
    let archive = out.with_file_name(format!("{}.tar.xz", name.display()));
    let mut tar = Command::new("tar");
    tar.env("XZ_OPT", "-T0").arg("-cJf").arg(&archive);
    tar.arg("-C").arg(out.parent().unwrap_or(Path::new("."))).arg(name);
    let status = tar.status().context("tar cannot be run")?;
    ensure!(status.success(), "{} cannot be packed: it takes tar and xz", archive.display());
    crate::say(&format!("{} and {}", out.display(), archive.display()));
    Ok(())
}
