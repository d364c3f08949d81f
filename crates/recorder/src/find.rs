//! Rings that are lying about: in a folder, or held by processes of this node as memory without a name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::image::Image;
use crate::layout::BYTES;
use crate::place::{PREFIX, plain};
use crate::reader::{ReadError, Reader};

/// What names of rings end with, in a dump.
pub(crate) const ENDING: &str = ".ring";

/// Rings that were found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Those that can be read.
    pub images: Vec<Image>,
    /// Why others cannot.
    pub notes: Vec<String>,
}

/// All rings in a folder: a dump, or the folder where rings of living jobs are.
///
/// # Errors
///
/// The folder cannot be read.
pub fn in_folder(folder: &Path) -> std::io::Result<Found> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        // Dumps are folders, and some are named alike.
        .filter(|path| is_named_as_a_ring(path) && !path.is_dir())
        .collect();
    paths.sort();
    Ok(read(paths))
}

/// The rings of a job on this node: those that are in `folder`, and those that have no name.
pub fn of_job(job: &str, folder: &Path) -> Found {
    let mut found = everything(folder);
    found.images.retain(|image| image.about.job == job);
    found
}

/// The jobs that have rings on this node.
pub fn jobs(folder: &Path) -> Vec<String> {
    let all: BTreeSet<String> =
        everything(folder).images.into_iter().map(|image| image.about.job).collect();
    all.into_iter().collect()
}

/// Removes the rings of a job whose owners are gone: nobody reads them any more.
pub fn sweep(job: &str, folder: &Path) {
    let begins = format!("{PREFIX}{}.", plain(job));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begins) {
            remove_if(&entry.path(), |reader| reader.about().job == job);
        }
    }
}

/// Removes rings whose owners have been gone for an hour: nobody was left to do it.
pub(crate) fn sweep_old(folder: &Path) {
    const OLD: u64 = 3_600_000_000_000;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_named_as_a_ring(&entry.path()) {
            let is_old = |reader: &Reader| {
                let beat = reader.image().map_or(u64::MAX, |image| image.progress.beat);
                crate::clock::unix().saturating_sub(beat) > OLD
            };
            remove_if(&entry.path(), is_old);
        }
    }
}

/// Removes a ring whose owner is gone, if it is ours to remove and `also` says so.
fn remove_if(path: &Path, also: impl FnOnce(&Reader) -> bool) {
    use std::os::unix::fs::MetadataExt as _;
    let mine =
        |meta: &fs::Metadata| meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw();
    if !fs::symlink_metadata(path).is_ok_and(|meta| mine(&meta)) {
        return;
    }
    if let Ok(reader) = Reader::open(path)
        && reader.life() == crate::image::Life::Gone
        && also(&reader)
    {
        let _ = fs::remove_file(path);
    }
}

/// The named rings of a job.
pub(crate) fn readers(job: &str, folder: &Path) -> Vec<Reader> {
    let begins = format!("{PREFIX}{}.", plain(job));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with(&begins));
    let readers = named.filter_map(|entry| Reader::open(&entry.path()).ok());
    readers.filter(|reader| reader.about().job == job).collect()
}

fn everything(folder: &Path) -> Found {
    let mut found = in_folder(folder).unwrap_or_default();
    let unnamed = read(without_a_name());
    found.images.extend(unnamed.images);
    found.notes.extend(unnamed.notes);
    found
}

pub(crate) fn is_named_as_a_ring(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A dump's, or a living one's: prefix, job, group and rank.
    name.ends_with(ENDING) || name.starts_with(PREFIX) && name.split('.').count() == 4
}

fn read(paths: Vec<PathBuf>) -> Found {
    let mut found = Found::default();
    for path in paths {
        let image = Reader::open(&path).and_then(|reader| {
            let mut image = reader.image()?;
            if path.to_string_lossy().ends_with(ENDING) {
                image.life = crate::image::Life::Unknown;
            }
            Ok(image)
        });
        match image {
            Ok(image) => found.images.push(image),
            // Its owner has ended since the folder was listed.
            Err(ReadError::File(_, Errno::NOENT)) => {}
            Err(e) => found.notes.push(e.to_string()),
        }
    }
    found
}

/// Descriptors of this user's processes that are rings in memory without a name.
fn without_a_name() -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered =
        processes.filter(|p| p.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()));
    let mut paths = Vec::new();
    let mut seen = BTreeSet::new();
    for process in numbered {
        for entry in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            use std::os::unix::fs::MetadataExt as _;
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let is_ours = target.to_string_lossy().starts_with(&format!("/memfd:{PREFIX}"));
            let meta = is_ours.then(|| fs::metadata(entry.path()).ok()).flatten();
            // Peers have it open too: each once.
            if let Some(meta) = meta.filter(|meta| meta.len() == BYTES as u64)
                && seen.insert(meta.ino())
            {
                paths.push(entry.path());
            }
        }
    }
    paths
}
