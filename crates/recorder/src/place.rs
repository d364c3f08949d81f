//! Where a ring's memory is: a file in a folder in memory, whose name tells an operator whose it is,
//! or, where there is no room for one, memory without a name, which the process's own folder in `/proc` shows.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::about::About;
use crate::layout::BYTES;

/// What rings' names begin with.
pub(crate) const PREFIX: &str = "crossover.";
/// Bytes of a job's name that are in a file's name.
const JOB_BYTES: usize = 64; // size: with the rest, far below the 255 of file systems

/// Memory of a ring of this process, locked for as long as the descriptor is open.
pub(crate) struct Place {
    pub(crate) file: OwnedFd,
    /// By which other processes of this node open it.
    pub(crate) path: PathBuf,
    /// The file, which is to be removed in the end; memory without a name removes itself.
    pub(crate) named: Option<PathBuf>,
}

/// The file's name: job, group and rank.
pub(crate) fn name(about: &About) -> String {
    format!("{PREFIX}{}.{:016x}.{}", plain(&about.job), about.group, about.rank)
}

/// A job's name as it is in file names.
pub(crate) fn plain(job: &str) -> String {
    let harmless = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    job.chars().map(harmless).take(JOB_BYTES).collect()
}

/// Makes the memory, every byte there: a lack of room is an error now and not a SIGBUS later. Says
/// why the folder could not be used, if so.
pub(crate) fn make(folder: Option<&Path>, about: &About) -> Result<(Place, Option<String>), Errno> {
    let why = match folder.map(|folder| in_folder(folder, about)) {
        Some(Ok(place)) => return Ok((place, None)),
        Some(Err(why)) => Some(why),
        None => None,
    };
    let file = rustix::fs::memfd_create(name(about), MemfdFlags::CLOEXEC)?;
    claim(&file)?;
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    Ok((Place { file, path, named: None }, why))
}

fn in_folder(folder: &Path, about: &About) -> Result<Place, String> {
    let path = folder.join(name(about));
    let access = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, access, Mode::RUSR | Mode::WUSR)
        .map_err(|e| format!("no file can be made in {}: {e}", folder.display()))?;
    match claim(&file) {
        Ok(()) => Ok(Place { file, path: path.clone(), named: Some(path) }),
        Err(e) => {
            let _ = rustix::fs::unlink(&path);
            Err(format!("{BYTES} B cannot be had in {}: {e}", folder.display()))
        }
    }
}

/// Locked first: a file whose lock is free is one whose owner is gone.
fn claim(file: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive)?;
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, BYTES as u64)
}
