//! How rank 0 makes the file of a segment: unnamed, so that nothing is left behind whenever who
//! dies; and with every byte allocated, so that a lack of space is a sentence now and not a
//! SIGBUS later.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use crossover_core::agreement::StepError;
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::layout::{self, Layout};
use crate::settings::Place;

/// What tells this group's segment from any other memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) nonce: u64,
    pub(crate) layout: Layout,
}

impl Token {
    pub(crate) const BYTES: usize = 40;

    pub(crate) fn encode(self) -> [u8; Token::BYTES] {
        let Layout { world, chunk, ring } = self.layout;
        let words = [self.nonce, layout::VERSION, world.into(), chunk as u64, ring as u64];
        let mut bytes = [0; Token::BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// Makes the file, zeroed but for the token.
pub(crate) fn create(place: &Place, token: Token) -> Result<OwnedFd, StepError> {
    let bytes = token.layout.bytes() as u64;
    let file = match place {
        Place::Dir(dir) => {
            let file = unnamed(dir, token.nonce).map_err(|e| cannot_create(dir, e))?;
            let free = free_bytes(&file).map_err(|e| cannot_create(dir, e))?;
            // A file system that reports no size at all (0 blocks) sets no limit.
            if free.is_some_and(|free| free < bytes) {
                return Err(no_space(dir, bytes, free));
            }
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
                Ok(()) => file,
                Err(Errno::NOSPC) => return Err(no_space(dir, bytes, free)),
                Err(e) => return Err(cannot_allocate(dir, bytes, e)),
            }
        }
        Place::Memfd => anonymous(bytes).map_err(|e| {
            StepError(format!("memfd of {bytes} B for the shared segment failed: {e}"))
        })?,
    };
    match rustix::io::pwrite(file.as_fd(), &token.encode(), layout::TOKEN as u64) {
        Ok(Token::BYTES) => Ok(file),
        Ok(n) => Err(StepError(format!("only {n} bytes of the segment's token were written"))),
        Err(e) => Err(StepError(format!("writing the segment's token failed: {e}"))),
    }
}

fn anonymous(bytes: u64) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create("crossover", MemfdFlags::CLOEXEC)?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    Ok(file)
}

fn unnamed(dir: &Path, nonce: u64) -> Result<OwnedFd, Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let access = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(dir, access | OFlags::TMPFILE, mode) {
        // This kernel or file system knows no unnamed files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            let name = dir.join(format!(".crossover-{}-{nonce:016x}", std::process::id()));
            let exclusive = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let file = rustix::fs::open(&name, exclusive, mode)?;
            rustix::fs::unlink(&name)?;
            Ok(file)
        }
        outcome => outcome,
    }
}

fn free_bytes(file: &OwnedFd) -> Result<Option<u64>, Errno> {
    let stat = rustix::fs::fstatvfs(file)?;
    Ok((stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize)))
}

fn no_space(dir: &Path, bytes: u64, free: Option<u64>) -> StepError {
    let free = free.map_or_else(|| "too few".to_owned(), |n| format!("{n} B"));
    StepError(format!(
        "{} has too little space: the segment needs {bytes} B, {free} are free; {REMEDY}",
        dir.display()
    ))
}

fn cannot_create(dir: &Path, e: Errno) -> StepError {
    StepError(format!("no file can be made in {}: {e}; {ELSEWHERE}", dir.display()))
}

fn cannot_allocate(dir: &Path, bytes: u64, e: Errno) -> StepError {
    StepError(format!("{bytes} B cannot be allocated in {}: {e}; {ELSEWHERE}", dir.display()))
}

const REMEDY: &str = "give the container more (docker --shm-size, in Kubernetes an emptyDir of \
                      medium Memory at that path), set CROSSOVER_HOST__RING (`0B` for none) or \
                      CROSSOVER_HOST__CHUNK to less, or CROSSOVER_HOST__SHM_DIR to another \
                      directory, or to `memfd`, which needs none";
const ELSEWHERE: &str = "set CROSSOVER_HOST__SHM_DIR to a directory in memory that can be \
                         written, or to `memfd`, which needs none";
