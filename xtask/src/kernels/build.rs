//! Compiles what changed, as many sources at once as there are processors.

use std::fs;
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
/// Where images are made, in `target/kernels`: a folder an architecture. What was compiled beside a
/// source that is refused waits here.
const PART: &str = ".part";

/// One source for one architecture.
struct Job<'a> {
    arch: Arch,
    source: &'a sources::Source,
    /// Where it is compiled to, or what is there from an earlier build.
    object: PathBuf,
    file: String,
    digest: String,
    /// What was compiled before.
    have: Option<File>,
}

/// Brings `target/kernels` up to date for architectures of one platform, and prints what the
/// kernels take. An architecture's folder changes when all its sources are compiled.
///
/// # Errors
///
/// Every source that the compiler refuses, with its text. What the folder had stays; what else was
/// compiled is not compiled again.
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
    let mut results = compile_all(root, toolchain, &jobs).into_iter();
    let mut refused = Vec::new();
    for (&arch, jobs) in arches.iter().zip(jobs.chunks(found.len())) {
        let mut files = Vec::new();
        for result in results.by_ref().take(found.len()) {
            match result {
                Ok(file) => files.push(file),
                Err(why) => refused.push(format!("{} {why:#}", arch.name)),
            }
        }
        let manifest = manifest(root, toolchain, arch, files)?;
        if manifest.files.len() < found.len() {
            manifest.write(&kernels.join(PART).join(arch.name))?;
            continue;
        }
        check::unique(&manifest)?;
        install(root, toolchain, &kernels, jobs, &manifest)?;
        crate::say(&check::table(&manifest));
    }
    // The first in full: a mistake in a header is told by every source.
    match refused.split_first() {
        None => Ok(()),
        Some((first, rest)) => {
            let rest: Vec<_> = rest.iter().filter_map(|why| why.lines().next()).collect();
            let n = refused.len();
            let kept = "what was built before is kept";
            bail!("{n} of {} not compiled; {kept}\n{first}\n{}", jobs.len(), rest.join("\n"))
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
        let part = kernels.join(PART).join(arch.name);
        fs::create_dir_all(&part)?;
        let old = Manifest::read(&folder).unwrap_or_default();
        let waiting = Manifest::read(&part).unwrap_or_default();
        let how = compile::how(toolchain, arch);
        for source in found {
            let digest = sources::digest(root, source, headers, &how)?;
            let name = match arch.platform {
                Platform::Cuda => format!("{}.fatbin", source.stem),
                Platform::Hip => format!("{}.co", source.stem),
                Platform::Host => format!("{}.o", source.stem),
            };
            let places = [(&old, objects(arch, &folder)), (&waiting, part.clone())];
            let file =
                if arch.platform == Platform::Host { LIBRARY.to_owned() } else { name.clone() };
            let is_same = |have: &&File| have.digest == digest && have.file == file;
            let there = places.into_iter().find_map(|(manifest, place)| {
                let object = place.join(&name);
                let have = manifest.files.iter().find(is_same).filter(|_| object.exists())?;
                Some((have.clone(), object))
            });
            let (have, object) = match there {
                Some((have, object)) => (Some(have), object),
                None => (None, part.join(&name)),
            };
            jobs.push(Job { arch, source, object, file, digest, have });
        }
        // What is about to be compiled is not waiting: a build that is broken off leaves no
        // manifest that lies.
        let is_kept = |file: &File| {
            jobs.iter().any(|job| job.have.as_ref() == Some(file) && job.object.starts_with(&part))
        };
        let kept = waiting.files.into_iter().filter(is_kept).collect();
        manifest(root, toolchain, arch, kept)?.write(&part)?;
    }
    Ok(jobs)
}

/// Where an architecture's folder has its objects.
fn objects(arch: Arch, folder: &Path) -> PathBuf {
    if arch.platform == Platform::Host { folder.join("objects") } else { folder.to_owned() }
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

/// Moves what was compiled into the architecture's folder, and removes what nobody needs there.
fn install(
    root: &Path,
    toolchain: &Toolchain,
    kernels: &Path,
    jobs: &[Job<'_>],
    manifest: &Manifest,
) -> Result<()> {
    let Some(Job { arch, .. }) = jobs.first() else { return Ok(()) };
    let folder = kernels.join(arch.name);
    let part = kernels.join(PART).join(arch.name);
    let objects = objects(*arch, &folder);
    fs::create_dir_all(&objects)?;
    let mut old = Manifest::read(&folder).unwrap_or_default();
    let is_new = |job: &&Job<'_>| job.object.starts_with(&part);
    let mut moves: Vec<_> =
        jobs.iter().filter(is_new).map(|job| job.object.clone()).map(|it| (it, &objects)).collect();
    let is_host = arch.platform == Platform::Host;
    if is_host && (old != *manifest || !folder.join(LIBRARY).exists()) {
        let all: Vec<_> = jobs.iter().map(|job| job.object.clone()).collect();
        let library = part.join(LIBRARY);
        compile::link(root, toolchain, &all, &library)?;
        moves.push((library, &folder));
    }
    // Meanwhile what is replaced is not in the manifest, so that none lies if this is broken off.
    if !moves.is_empty() && !old.files.is_empty() {
        old.files.retain(|file| !moves.iter().any(|(from, _)| from.ends_with(&file.file)));
        old.write(&folder)?;
    }
    // By rename: who runs kernels has the old ones mapped.
    for (from, to) in moves {
        let to = to.join(from.file_name().context("an image has a name")?);
        fs::rename(&from, &to).with_context(|| format!("{} cannot be replaced", to.display()))?;
    }
    manifest.write(&folder)?;
    remove_strangers(&folder, manifest)?;
    fs::remove_dir_all(&part).with_context(|| format!("{} cannot be removed", part.display()))
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
