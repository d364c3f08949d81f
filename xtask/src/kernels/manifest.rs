//! `manifest.json`: what a folder of kernels holds.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// The file's name in an architecture's folder.
pub(crate) const NAME: &str = "manifest.json";

/// What a folder holds. It is written last: a folder without one is not built.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The architecture, as policies write it.
    pub(crate) arch: String,
    /// `cuda`, `hip` or `host`.
    pub(crate) platform: String,
    /// Who compiled.
    pub(crate) compiler: String,
    /// SHA-256 of `kernels-common/crossover/abi.h`, which kernels and their launcher share.
    pub(crate) abi: String,
    /// SHA-256 over the digests of `files`.
    pub(crate) sources: String,
    /// One for each source.
    pub(crate) files: Vec<File>,
}

/// What one source was compiled into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct File {
    /// In the folder. Several sources may share one.
    pub(crate) file: String,
    /// In the checkout.
    pub(crate) source: String,
    /// SHA-256 of the source, all headers, the compiler and its flags.
    pub(crate) digest: String,
    /// The entry points, by name.
    pub(crate) kernels: Vec<Kernel>,
}

/// An entry point, and what the compiler made of it. On the host the numbers are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kernel {
    /// By which a loader asks for it.
    pub(crate) name: String,
    /// Most threads of a block, as the source states; 0 where it does not.
    pub(crate) threads: u32,
    /// A thread's registers: on AMD the vector ones.
    pub(crate) registers: u32,
    /// Bytes that a thread puts aside because registers do not suffice.
    pub(crate) spill: u32,
    /// Bytes of a thread's stack, spills included.
    pub(crate) stack: u32,
    /// Bytes of a block's shared memory, the system's own included.
    pub(crate) shared: u32,
}

impl Manifest {
    /// Of a folder; `None` where it is not built, or by another version of this program.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(NAME)).ok()?).ok()
    }

    /// By rename, so that a loader sees the old one or the new one.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let part = folder.join(format!("{NAME}.part"));
        let text = serde_json::to_string_pretty(self)?;
        fs::write(&part, text + "\n")
            .and_then(|()| fs::rename(&part, folder.join(NAME)))
            .with_context(|| format!("{} cannot be written", part.display()))
    }
}
