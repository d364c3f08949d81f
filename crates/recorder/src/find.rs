//! Rings that are lying about: in a folder, or held open by processes of this node, which have memory
//! without a name, or a folder of their own choice.

use std::collections::BTreeSet;
use std::fs;
use std::mem::offset_of;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::image::Image;
use crate::layout::{BYTES, Memory};
use crate::life;
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
    /// Those that this user may not read.
    pub refused: Vec<Refused>,
}

/// A ring of another user's, who alone may read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The file.
    pub path: PathBuf,
    /// Whose it is, by number.
    pub user: u32,
    /// The job, as it is in the file's name; `None` for a copy, whose name does not tell, and for what no job
    /// is named: anybody may have put a file there.
    pub job: Option<String>,
}

impl Refused {
    fn of(path: &Path) -> Option<Refused> {
        let user = fs::symlink_metadata(path).ok()?.uid();
        let name = path.file_name()?.to_string_lossy();
        let job = name.strip_prefix(PREFIX).and_then(|rest| rest.split('.').next());
        let job = job.filter(|job| !job.is_empty() && plain(job) == *job).map(str::to_owned);
        Some(Refused { path: path.to_owned(), user, job })
    }

    /// Is it of a job of this name?
    pub fn is_of(&self, job: &str) -> bool {
        self.job.as_ref().is_some_and(|own| *own == plain(job))
    }
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

/// The rings of a job on this node, as of [`on_node`]: those in `folder` and those without a name; where it
/// has none in `folder`, those in other folders. Jobs of one name may be in several.
pub fn of_job(job: &str, folder: &Path) -> Found {
    let mut found = on_node(folder);
    found.images.retain(|image| image.about.job == job);
    let parent = |image: &Image| Path::new(&image.source).parent().map(Path::to_owned);
    let is_here = |image: &Image| parent(image).is_some_and(|parent| parent == folder);
    if found.images.iter().any(is_here) {
        found
            .images
            .retain(|image| is_here(image) || Path::new(&image.source).starts_with("/proc"));
    }
    found.refused.retain(|refused| refused.is_of(job));
    found
}

/// All rings of this node: those that are in `folder`, and those that processes of this user hold open,
/// wherever they are.
pub fn on_node(folder: &Path) -> Found {
    let mut found = in_folder(folder).unwrap_or_default();
    let inside = fs::read_dir(folder).into_iter().flatten().flatten();
    let known =
        inside.filter_map(|entry| entry.metadata().ok()).map(|meta| (meta.dev(), meta.ino()));
    let held = read(held(known.collect()));
    found.images.extend(held.images);
    found.notes.extend(held.notes);
    found
}

/// Removes the rings of a job whose owners are gone: nobody reads them any more, nor those that their owners
/// were making when they ended.
pub fn sweep(job: &str, folder: &Path) {
    let begins = format!("{PREFIX}{}.", plain(job));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begins) {
            remove_if(&entry.path(), |reader| reader.about().job == job, |_| true);
        }
    }
}

/// Removes rings whose owners have been gone for an hour: nobody was left to do it.
pub(crate) fn sweep_old(folder: &Path) {
    const OLD: u64 = 3_600_000_000_000;
    let is_old_file = |meta: &fs::Metadata| {
        let age = meta.modified().ok().and_then(|written| written.elapsed().ok());
        age.is_some_and(|age| age.as_nanos() > u128::from(OLD))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_named_as_a_ring(&entry.path()) {
            let is_old = |reader: &Reader| {
                let beat = reader.image().map_or(u64::MAX, |image| image.progress.beat);
                crate::clock::unix().saturating_sub(beat) > OLD
            };
            remove_if(&entry.path(), is_old, is_old_file);
        }
    }
}

/// Removes a ring whose owner is gone, if it is ours to remove and `also` says so, or, of one that was never
/// finished, `unfinished`.
fn remove_if(
    path: &Path,
    also: impl FnOnce(&Reader) -> bool,
    unfinished: impl FnOnce(&fs::Metadata) -> bool,
) {
    let mine =
        |meta: &fs::Metadata| meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw();
    let Some(meta) = fs::symlink_metadata(path).ok().filter(mine) else { return };
    let is_over = match Reader::open(path) {
        Ok(reader) => reader.life() == crate::image::Life::Gone && also(&reader),
        Err(ReadError::Damaged(_)) => {
            let is_left = |file: &fs::File| is_unfinished(file) && life::is_free(file);
            unfinished(&meta) && fs::File::open(path).is_ok_and(|file| is_left(&file))
        }
        Err(ReadError::File(..)) => false,
    };
    if is_over {
        let _ = fs::remove_file(path);
    }
}

/// Has a ring's owner not come to say that it is one? What is no ring has other bytes there.
fn is_unfinished(file: &fs::File) -> bool {
    let mut magic = [0; size_of::<u64>()];
    let read = rustix::io::pread(file, &mut magic[..], offset_of!(Memory, magic) as u64);
    read.is_ok() && magic == [0; 8]
}

/// The named rings of a job.
pub(crate) fn readers(job: &str, folder: &Path) -> Vec<Reader> {
    let begins = format!("{PREFIX}{}.", plain(job));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with(&begins));
    let readers = named.filter_map(|entry| Reader::open(&entry.path()).ok());
    readers.filter(|reader| reader.about().job == job).collect()
}

pub(crate) fn is_named_as_a_ring(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(ENDING) || is_named_as_a_living_ring(path)
}

/// Prefix, job, group and rank. The last is a number: of a file that has lost its name the kernel says so
/// behind it.
fn is_named_as_a_living_ring(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(PREFIX)
        && name.split('.').count() == 4
        && name.rsplit('.').next().is_some_and(|rank| rank.parse::<u32>().is_ok())
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
            Err(ReadError::File(_, Errno::ACCESS | Errno::PERM)) => {
                found.refused.extend(Refused::of(&path));
            }
            Err(e) => found.notes.push(e.to_string()),
        }
    }
    found
}

/// What processes of this user have open that is a ring and not `known`, by device and inode: memory
/// without a name by the descriptor, a file by its name.
fn held(mut known: BTreeSet<(u64, u64)>) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered =
        processes.filter(|p| p.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()));
    let mut paths = Vec::new();
    for process in numbered {
        for entry in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let is_memory = target.to_string_lossy().starts_with(&format!("/memfd:{PREFIX}"));
            if !is_memory && !is_named_as_a_living_ring(&target) {
                continue;
            }
            let Ok(meta) = fs::metadata(entry.path()) else { continue };
            // A file without a name is that of a rank which has said goodbye.
            let is_ring = meta.len() == BYTES as u64 && (is_memory || meta.nlink() > 0);
            // Peers have it open too: each once.
            if is_ring && known.insert((meta.dev(), meta.ino())) {
                let is_same =
                    |named: fs::Metadata| (named.dev(), named.ino()) == (meta.dev(), meta.ino());
                // In another container the name means nothing here.
                let is_here = !is_memory && fs::metadata(&target).is_ok_and(is_same);
                paths.push(if is_here { target } else { entry.path() });
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use rustix::fs::FlockOperation;

    use super::*;

    #[test]
    fn what_its_owner_did_not_come_to_finish_is_swept() {
        let _alone = life::FORKING.lock().expect("no such test panics");
        let folder = tempfile::TempDir::new().expect("a folder");
        let make = |name: &str, bytes: usize| {
            let path = folder.path().join(name);
            fs::write(&path, vec![0; bytes]).expect("a file");
            path
        };
        // Named and no more, and with all its room; of a rank that is making it, and of another job.
        let gone = [make("crossover.j.0a.0", 0), make("crossover.j.0a.1", BYTES)];
        let kept = [make("crossover.j.0a.2", BYTES), make("crossover.k.0a.0", 0)];
        let owner = fs::File::open(&kept[0]).expect("it is there");
        rustix::fs::flock(&owner, FlockOperation::NonBlockingLockExclusive).expect("it is free");
        sweep("j", folder.path());
        sweep_old(folder.path());
        assert!(gone.iter().all(|path| !path.exists()), "left behind");
        assert!(kept.iter().all(|path| path.exists()), "taken from its owner");
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3601);
        fs::File::options().write(true).open(&kept[1]).unwrap().set_modified(old).unwrap();
        sweep_old(folder.path());
        assert!(kept[0].exists() && !kept[1].exists(), "for an hour nobody has made it");
    }
}
