//! Which sources there are, and a digest of all that a compilation depends on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest, Sha256};

use super::arch::Platform;

/// What every platform compiles.
const COMMON: &str = "kernels-common";
/// Entry points, in it: a folder a collective, a file an algorithm.
const ENTRIES: &str = "kernels-common/kernels";
/// What kernels and their launcher share, in it.
const ABI: &str = "kernels-common/crossover/abi.h";

/// A source to compile.
#[derive(Debug)]
pub(super) struct Source {
    /// In the checkout.
    pub(super) path: PathBuf,
    /// `all_reduce-one_shot_pull`: what its object is called.
    pub(super) stem: String,
    /// Does it define kernels? Not if it belongs to what runs them on the host.
    pub(super) is_kernel: bool,
}

/// The sources of a platform, sorted.
pub(super) fn of(root: &Path, platform: Platform) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for (folder, ending) in [(ENTRIES, "cc"), (platform.folder(), platform.ending())] {
        for path in files(&root.join(folder), &[ending])? {
            // What is deeper in the emulation's folder is for its own tests.
            if platform == Platform::Host
                && ending != "cc"
                && path.parent() != Some(&root.join(folder))
            {
                continue;
            }
            let inside = path.strip_prefix(root.join(folder))?.with_extension("");
            let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
            sources.push(Source {
                path: path.strip_prefix(root)?.to_owned(),
                stem: parts.join("-"),
                is_kernel: folder == ENTRIES || platform != Platform::Host,
            });
        }
    }
    sources.sort_by(|a, b| a.stem.cmp(&b.stem));
    for pair in sources.windows(2) {
        ensure!(
            pair[0].stem != pair[1].stem,
            "{} and {} would be compiled into the same file: rename one",
            pair[0].path.display(),
            pair[1].path.display()
        );
    }
    Ok(sources)
}

/// Digest of every header that a platform's sources may include.
pub(super) fn headers(root: &Path, platform: Platform) -> Result<String> {
    let mut hash = Sha256::new();
    for folder in [COMMON, platform.folder()] {
        for path in files(&root.join(folder), &["h", "inc"])? {
            take(&mut hash, root, path.strip_prefix(root)?)?;
        }
    }
    Ok(hex(hash))
}

/// Digest of one source compiled in one way.
pub(super) fn digest(
    root: &Path,
    source: &Source,
    headers: &str,
    how: &[String],
) -> Result<String> {
    let mut hash = Sha256::new();
    for text in how.iter().map(String::as_str).chain([headers]) {
        hash.update(text);
        hash.update([0]);
    }
    take(&mut hash, root, &source.path)?;
    Ok(hex(hash))
}

/// Digest of the header that kernels and their launcher share.
pub(super) fn abi(root: &Path) -> Result<String> {
    let bytes = fs::read(root.join(ABI)).with_context(|| format!("{ABI} cannot be read"))?;
    Ok(hex(Sha256::new_with_prefix(bytes)))
}

/// Digest over texts.
pub(super) fn over<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    hex(texts.fold(Sha256::new(), |hash, text| hash.chain_update(text).chain_update([0])))
}

fn take(hash: &mut Sha256, root: &Path, path: &Path) -> Result<()> {
    let bytes =
        fs::read(root.join(path)).with_context(|| format!("{} cannot be read", path.display()))?;
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
    Ok(())
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Files below a folder by their endings, sorted. A folder that is not there has none; a package's
/// own build folder is not looked into.
fn files(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(files(&path, endings)?);
        } else if path.extension().is_some_and(|end| endings.iter().any(|it| end == *it)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
