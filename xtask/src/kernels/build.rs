//! Compiles what changed, as many sources at once as there are processors.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result, bail};

use super::arch::{Arch, Platform};
use super::manifest::{File, Manifest};
use super::toolchain::Toolchain;
use super::{check, compile, sources};

/// The host's objects are linked into one library.
const LIBRARY: &str = "kernels.so";

/// One source for one architecture.
struct Job<'a> {
    arch: Arch,
    source: &'a sources::Source,
    object: PathBuf,
    file: String,
    digest: String,
    /// What the folder has already.
    have: Option<File>,
}

/// Brings `target/kernels` up to date for architectures of one platform, and prints what the
/// kernels take.
///
/// # Errors
///
/// Every source that the compiler refuses, with its text; the others are built all the same.
pub(super) fn run(root: &Path, toolchain: &Toolchain, arches: &[Arch]) -> Result<()> {
    let kernels = root.join("target/kernels");
    fs::create_dir_all(&kernels)?;
    // Two builds at once would write the same files.
    let lock = fs::File::create(kernels.join(".lock"))?;
    lock.lock().context("target/kernels/.lock cannot be locked")?;

    let found = sources::of(root, toolchain.platform)?;
    if !found.iter().any(|source| source.is_kernel) {
        bail!(
            "there are no kernels for {}: kernels-common/kernels is empty",
            toolchain.platform.name()
        );
    }
    let headers = sources::headers(root, toolchain.platform)?;
    let jobs = jobs(root, &kernels, toolchain, arches, &found, &headers)?;
    // What is about to be replaced is not in the manifest meanwhile, so that a build which is broken
    // off leaves none that lies.
    for (arch, jobs) in arches.iter().zip(jobs.chunks(found.len())) {
        if jobs.iter().any(|job| job.have.is_none()) {
            let have = jobs.iter().filter_map(|job| job.have.clone()).collect();
            let folder = kernels.join(arch.name);
            match fs::remove_file(folder.join(LIBRARY)) {
                Err(why) if why.kind() != ErrorKind::NotFound => return Err(why.into()),
                _ => manifest(root, toolchain, *arch, have)?.write(&folder)?,
            }
        }
    }
    let mut results = compile_all(root, toolchain, &jobs).into_iter();
    let mut refused = Vec::new();
    for &arch in arches {
        let mut files = Vec::new();
        for result in results.by_ref().take(found.len()) {
            match result {
                Ok(file) => files.push(file),
                Err(why) => refused.push(format!("{} {why:#}", arch.name)),
            }
        }
        let folder = kernels.join(arch.name);
        let manifest = manifest(root, toolchain, arch, files)?;
        check::unique(&manifest)?;
        if arch.platform == Platform::Host && refused.is_empty() {
            link(root, toolchain, &folder, &jobs)?;
        }
        manifest.write(&folder)?;
        remove_strangers(&folder, &manifest)?;
        crate::say(&check::table(&manifest));
    }
    // The first in full: a mistake in a header is told by every source.
    match refused.split_first() {
        None => Ok(()),
        Some((first, rest)) => {
            let rest: Vec<_> = rest.iter().filter_map(|why| why.lines().next()).collect();
            let n = refused.len();
            bail!("{n} of {} not compiled\n{first}\n{}", jobs.len(), rest.join("\n"))
        }
    }
}

fn manifest(root: &Path, toolchain: &Toolchain, arch: Arch, files: Vec<File>) -> Result<Manifest> {
    Ok(Manifest {
        arch: arch.name.to_owned(),
        platform: arch.platform.name().to_owned(),
        compiler: toolchain.version.clone(),
        abi: sources::abi(root)?,
        sources: sources::over(files.iter().map(|file| file.digest.as_str())),
        files,
    })
}

fn jobs<'a>(
    root: &Path,
    kernels: &Path,
    toolchain: &Toolchain,
    arches: &[Arch],
    found: &'a [sources::Source],
    headers: &str,
) -> Result<Vec<Job<'a>>> {
    let mut jobs = Vec::new();
    for &arch in arches {
        let folder = kernels.join(arch.name);
        let old = Manifest::read(&folder).unwrap_or_default();
        let how = compile::how(toolchain, arch);
        let objects = if arch.platform == Platform::Host { folder.join("objects") } else { folder };
        fs::create_dir_all(&objects)?;
        for source in found {
            let digest = sources::digest(root, source, headers, &how)?;
            let name = match arch.platform {
                Platform::Cuda => format!("{}.fatbin", source.stem),
                Platform::Hip => format!("{}.co", source.stem),
                Platform::Host => format!("{}.o", source.stem),
            };
            let object = objects.join(&name);
            let file = if arch.platform == Platform::Host { LIBRARY.to_owned() } else { name };
            let is_same = |have: &&File| have.digest == digest && have.file == file;
            let have = old.files.iter().find(is_same).filter(|_| object.exists()).cloned();
            jobs.push(Job { arch, source, object, file, digest, have });
        }
    }
    Ok(jobs)
}

/// In the order of `jobs`.
fn compile_all(root: &Path, toolchain: &Toolchain, jobs: &[Job<'_>]) -> Vec<Result<File>> {
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(jobs.iter().enumerate());
    let results = Mutex::new(Vec::new());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let work = || {
        while let Some((at, job)) = next() {
            let result = compile_one(root, toolchain, job);
            if let Ok(mut results) = results.lock() {
                results.push((at, result));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..at_once.min(jobs.len()) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

fn compile_one(root: &Path, toolchain: &Toolchain, job: &Job<'_>) -> Result<File> {
    if let Some(have) = &job.have {
        return Ok(have.clone());
    }
    crate::say(&format!("{} {}", job.arch.name, job.source.path.display()));
    let kernels = compile::compile(root, toolchain, job.arch, job.source, &job.object)
        .with_context(|| format!("{} is refused", job.source.path.display()))?;
    Ok(File {
        file: job.file.clone(),
        source: job.source.path.display().to_string(),
        digest: job.digest.clone(),
        kernels,
    })
}

fn link(root: &Path, toolchain: &Toolchain, folder: &Path, jobs: &[Job<'_>]) -> Result<()> {
    let library = folder.join(LIBRARY);
    if library.exists() {
        return Ok(());
    }
    let objects: Vec<_> = jobs.iter().map(|job| job.object.clone()).collect();
    // By rename: a test that runs has the old one mapped.
    let part = folder.join(format!("{LIBRARY}.part"));
    compile::link(root, toolchain, &objects, &part)?;
    fs::rename(&part, &library).context("the library cannot be replaced")
}

/// Images of sources that are gone.
fn remove_strangers(folder: &Path, manifest: &Manifest) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_known = name == super::manifest::NAME
            || manifest.files.iter().any(|file| name == file.file.as_str());
        if entry.file_type()?.is_file() && !is_known {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
