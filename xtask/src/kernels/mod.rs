//! `cargo xtask kernels`: the kernels' sources, compiled for each platform without any device.
//!
//! What is built, and what a loader reads:
//!
//! ```text
//! target/kernels/<arch>/manifest.json                     written last: what is in the folder
//! target/kernels/sm90/all_reduce-one_shot_pull.fatbin     one file a source
//! target/kernels/gfx942/all_reduce-one_shot_pull.co
//! target/kernels/host/kernels.so                          one file for all sources
//! ```
//!
//! A kernel is found by its name in the manifest ([`manifest::Manifest`]), which says the file to
//! load. Names are unique over a folder. What did not change is not compiled again. Images are made in
//! `target/kernels/.part`, and a folder changes when all of its sources are compiled.

mod arch;
mod build;
mod check;
mod compile;
mod manifest;
#[cfg(test)]
mod orders;
#[cfg(test)]
mod rebuilds;
mod sources;
mod toolchain;
mod usage;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Subcommand;

use arch::{Arch, Platform};
use manifest::Manifest;
use toolchain::Toolchain;

/// What to compile, or to check
#[derive(Subcommand)]
pub(crate) enum Kernels {
    /// Compile for NVIDIA's architectures
    Cuda {
        /// Such as sm80,sm90a; all, if not said
        #[arg(long, value_delimiter = ',', value_parser = |name: &str| Arch::parse(Platform::Cuda, name))]
        arch: Vec<Arch>,
    },
    /// Compile for AMD's architectures
    Hip {
        /// Such as gfx90a,gfx942; all, if not said
        #[arg(long, value_delimiter = ',', value_parser = |name: &str| Arch::parse(Platform::Hip, name))]
        arch: Vec<Arch>,
    },
    /// Compile for this processor, where tests run the kernels without a device
    Host,
    /// Refuse what was compiled if a kernel spills, has a stack, or takes too many registers
    Check,
}

/// CUDA's compiler, which is fetched if it is not there.
///
/// # Errors
///
/// It cannot be had.
pub(crate) fn nvcc(root: &Path) -> Result<PathBuf> {
    Ok(Toolchain::have(root, Platform::Cuda)?.compiler)
}

pub(crate) fn run(root: &Path, kernels: Kernels) -> Result<()> {
    let (platform, mut arches) = match kernels {
        Kernels::Cuda { arch } => (Platform::Cuda, arch),
        Kernels::Hip { arch } => (Platform::Hip, arch),
        Kernels::Host => (Platform::Host, Vec::new()),
        Kernels::Check => return check::run(root),
    };
    if arches.is_empty() {
        arches = Arch::of(platform).collect();
    }
    build::run(root, &Toolchain::have(root, platform)?, &arches)
}

/// Brings kernels of devices up to date: of the architectures named, or, if none is, of all that
/// are built. Returns the names of their folders.
pub(crate) fn refresh(root: &Path, names: &[String]) -> Result<Vec<&'static str>> {
    let devices = [Platform::Cuda, Platform::Hip];
    let mut arches = Vec::new();
    for name in names {
        let found = devices.iter().find_map(|platform| Arch::parse(*platform, name).ok());
        arches.push(found.with_context(|| format!("{name} is no device's architecture"))?);
    }
    if names.is_empty() {
        let is_built = |arch: &Arch| {
            let manifest = Manifest::read(&root.join("target/kernels").join(arch.name));
            manifest.is_some_and(|it| it.files.iter().any(|file| !file.kernels.is_empty()))
        };
        arches.extend(devices.into_iter().flat_map(Arch::of).filter(is_built));
    }
    for platform in devices {
        let of: Vec<_> = arches.iter().copied().filter(|arch| arch.platform == platform).collect();
        if !of.is_empty() {
            build::run(root, &Toolchain::have(root, platform)?, &of)?;
        }
    }
    Ok(arches.iter().map(|arch| arch.name).collect())
}

/// Builds all kernels, to look at what each takes, and the host's for tests to run. Where a compiler
/// cannot be had, says which tests skip.
///
/// # Errors
///
/// A compiler refuses a kernel, or [`check`](Kernels::Check) does.
pub(crate) fn for_tests(root: &Path) -> Result<()> {
    for platform in [Platform::Cuda, Platform::Hip, Platform::Host] {
        let arches: Vec<_> = Arch::of(platform).collect();
        match Toolchain::have(root, platform) {
            Ok(toolchain) => build::run(root, &toolchain, &arches)?,
            Err(why) => {
                crate::say(&format!("the tests of {} kernels skip: {why:#}", platform.name()));
            }
        }
    }
    check::run(root)
}
