//! Images for tests, or a sentence about why a test skips.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossover_kernel_emulation::compile::{self, CompileError, Make};
use crossover_kernel_emulation::runtime::Runtime;

/// The kernels made for the emulator's own tests.
pub(crate) fn probe() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/probe.cc")
}

/// Builds, or says that the test skips.
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
pub(crate) fn build(make: Make, kernels: &[PathBuf], defines: &[&str]) -> Option<PathBuf> {
    match compile::build(make, kernels, defines) {
        Ok(path) => Some(path),
        Err(error @ CompileError::NoCompiler(_)) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Builds and loads.
pub(crate) fn image(kernels: &[PathBuf], defines: &[&str]) -> Option<Arc<Runtime>> {
    let path = build(Make::Image, kernels, defines)?;
    Some(Runtime::open(&path).expect("what was built can be loaded"))
}

/// A file of this process for a scenario.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("{name}-{}-{number}.scenario", std::process::id()))
}

pub(crate) fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
