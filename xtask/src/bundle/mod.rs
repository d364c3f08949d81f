//! `cargo xtask bundle`: a folder that a machine with a GPU and without Rust can run.
//!
//! Programs, tests, the C API's library and kernels lie beside one another, because programs look for kernels beside
//! themselves. `run.sh` tests and measures.

mod place;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{kernels, vllm};
use place::Place;

/// Programs: package, binary.
const PROGRAMS: &[(&str, &str)] = &[("crossover-cli", "crossover"), ("crossover-tests", "engine")];
/// Tests that want a device: package, test.
const TESTS: &[(&str, &str)] = &[
    ("crossover-device", "on_device"),
    ("crossover-tests", "device_ipc"),
    ("crossover-tests", "device_nccl"),
    ("crossover-tests", "hangs"),
];
/// The C API: its library for cargo, and for engines.
const LIBRARY: (&str, &str) = ("crossover-plugin", "libcrossover.so");
/// PyTorch as a witness of the C API.
const WITNESS: &str = "tests/witness";
const RUN: &str = include_str!("run.sh");

/// Fills `out` and packs it into `<out>.tar.xz`. What was there stays until the new one is whole.
///
/// # Errors
///
/// No kernels were built yet, something does not compile, or `out` is no folder for a bundle.
pub(crate) fn run(root: &Path, out: Option<&Path>, arches: &[String]) -> Result<()> {
    let default = root.join("target/bundle");
    fs::create_dir_all(root.join("target"))?; // cargo may have its own elsewhere
    let place = Place::of(root, out.unwrap_or(&default))?;
    let arches = kernels::refresh(root, arches)?;
    ensure!(
        !arches.is_empty(),
        "no kernels are built: cargo xtask kernels cuda --arch sm90, or what the machine has"
    );
    let part = place.begin()?;
    for (package, name) in PROGRAMS {
        let built = built(root, &["build", "--package", package, "--bin", name], name, None)?;
        strip(&built, &part.join(name))?;
    }
    for (package, name) in TESTS {
        let how = ["test", "--no-run", "--package", package, "--test", name];
        strip(&built(root, &how, name, None)?, &part.join(format!("test-{name}")))?;
    }
    let (package, library) = LIBRARY;
    let name = package.replace('-', "_");
    let so = built(root, &["build", "--package", package, "--lib"], &name, Some("so".as_ref()))?;
    strip(&so, &part.join(library))?;
    copy(&root.join(WITNESS), &part.join("witness"))?;
    for arch in arches {
        copy(&root.join("target/kernels").join(arch), &part.join("kernels").join(arch))?;
    }
    // A peer, where it was built.
    let peer = vllm::program(root);
    if peer.exists() {
        strip(&peer, &part.join("vllm"))?;
    }
    let script = part.join("run.sh");
    fs::write(&script, RUN)?;
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    pack(place.end()?)
}

/// Builds one target with optimisation; where its file with this ending is.
fn built(root: &Path, how: &[&str], name: &str, ending: Option<&OsStr>) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(how).args(["--release", "--quiet", "--message-format", "json-render-diagnostics"]);
    let output = command.current_dir(root).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{name} cannot be built");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| {
            let files = message["filenames"].as_array().into_iter().flatten();
            let mut found = files.chain([&message["executable"]]).filter_map(Value::as_str);
            found.find(|file| Path::new(file).extension() == ending).map(PathBuf::from)
        })
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
    let part = archive.with_extension("xz.part");
    let mut tar = Command::new("tar");
    tar.env("XZ_OPT", "-T0").arg("-cJf").arg(&part);
    tar.arg("-C").arg(out.parent().unwrap_or(Path::new("."))).arg(name);
    let status = tar.status().context("tar cannot be run")?;
    ensure!(status.success(), "{} cannot be packed: it takes tar and xz", archive.display());
    fs::rename(&part, &archive)?;
    crate::say(&format!("{} and {}", out.display(), archive.display()));
    Ok(())
}
