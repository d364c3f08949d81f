//! Peers and their adapters: what can be had is installed and built, what cannot is said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::complaint::complaint;
use super::peer::{INTEL_MPI, Package, Peer};

/// Sees to it that the peer is there, and returns its adapter.
///
/// # Errors
///
/// It cannot be had here; the message says why.
pub(super) fn install(root: &Path, target: &Path, dir: &Path, peer: &Peer) -> Result<PathBuf> {
    fetch(dir, peer.package)?;
    let built = target.join("peers/adapters");
    fs::create_dir_all(&built)?;
    let adapter = built.join(format!("libpeer-{}.so", peer.adapter));
    let sources = root.join("tests/peers/adapters");
    let venv = |package| match package {
        Package::Wheels { venv, .. } => dir.join(venv),
        Package::Distribution { .. } => PathBuf::new(),
    };
    let mut compile = match peer.package {
        Package::Distribution { mpicc, .. } => Command::new(mpicc),
        Package::Wheels { .. } if matches!(peer.adapter, "openmpi5" | "mpich5") => {
            Command::new(venv(peer.package).join("bin/mpicc"))
        }
        // Their wheels' compilers look for themselves where they were built.
        Package::Wheels { .. } => {
            Command::new(if peer.adapter == "oneccl" { "g++" } else { "gcc" })
        }
    };
    compile.args(["-O3", "-march=native", "-shared", "-fPIC", "-Wall", "-Wextra", "-o"]);
    compile.arg(&adapter);
    if peer.own_bf16 {
        compile.arg("-DPEER_OWN_BF16");
    }
    match peer.adapter {
        "oneccl" => {
            fetch(dir, INTEL_MPI)?; // for mpi.h
            compile.args(["-std=c++17", "-I"]).arg(venv(peer.package).join("include"));
            compile.arg("-I").arg(venv(INTEL_MPI).join("include")).arg(sources.join("ccl.cpp"));
            link(&mut compile, &venv(peer.package).join("lib"), &["-lccl", "-lmpi"]);
        }
        "intelmpi" => {
            compile.arg("-I").arg(venv(peer.package).join("include")).arg(sources.join("mpi.c"));
            link(&mut compile, &venv(peer.package).join("lib"), &["-lmpi"]);
        }
        _ => drop(compile.arg(sources.join("mpi.c"))),
    }
    quietly(&mut compile)?;
    Ok(adapter)
}

fn link(compile: &mut Command, folder: &Path, libraries: &[&str]) {
    compile.arg("-L").arg(folder).args(libraries);
    compile.arg(format!("-Wl,-rpath,{}", folder.display()));
}

fn fetch(dir: &Path, package: Package) -> Result<()> {
    match package {
        Package::Distribution { mpicc, packages } => {
            if quietly(Command::new(mpicc).arg("--version")).is_ok() {
                return Ok(());
            }
            crate::say(&format!("installing {}", packages.join(" ")));
            let mut apt = Command::new("apt-get");
            apt.args(["install", "-y", "-q", "--no-install-recommends"]).args(packages);
            quietly(&mut apt).with_context(|| {
                format!("{mpicc} is not there, and its packages cannot be installed")
            })
        }
        Package::Wheels { venv, requirements } => {
            let venv = dir.join(venv);
            // Written last: an installation that was broken off is done again.
            let whole = venv.join("lib/libmpi.so");
            if whole.exists() || venv.join("lib/libccl.so").exists() {
                return Ok(());
            }
            crate::say(&format!("installing {}", requirements.join(" ")));
            fs::create_dir_all(dir)?;
            quietly(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
            let mut pip = Command::new(venv.join("bin/pip"));
            pip.args(["--quiet", "--disable-pip-version-check", "install"]).args(requirements);
            quietly(&mut pip)
        }
    }
}

/// Runs a command whose output only matters if it fails.
fn quietly(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("{program} cannot be run"))?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{program} failed: {}", complaint(&output.stderr))
}

/// Builds the loop and the launcher, and says where they are.
pub(super) fn build(root: &Path, target: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "-p", "crossover-cli", "-p", "crossover-peers"]);
    // A relative CARGO_TARGET_DIR would be taken from `root`.
    let status = command.current_dir(root).env("CARGO_TARGET_DIR", target).status()?;
    ensure!(status.success(), "the loop cannot be built");
    Ok(target.join("release"))
}
