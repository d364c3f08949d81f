//! Descriptors between ranks that talk over TCP but share a node: opened again under /proc.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crossover_core::bootstrap::{Bootstrap, BootstrapError};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::identity::Identity;

/// A descriptor in its owner's table, and what it must turn out to be.
#[derive(Serialize, Deserialize)]
struct Offer {
    number: i32,
    device: u64,
    inode: u64,
    writable: bool,
}

/// Everyone's descriptors, opened through `/proc/<pid>/fd/<n>`. The outcome is voted on: where
/// one rank cannot open one, every rank returns the same reason. What is opened is a file, memory
/// file or device again, under its own file offset; sockets cannot be had this way.
pub(crate) fn all_gather(
    boot: &dyn Bootstrap,
    identities: &[Identity],
    step: &str,
    mine: &[BorrowedFd<'_>],
) -> Result<Vec<Vec<OwnedFd>>, BootstrapError> {
    let no_descriptors = |why| BootstrapError::NoDescriptors { step: step.to_owned(), why };
    // The same on every rank, because all have the same list: no exchange is needed to agree.
    if let Some(why) = hidden(identities) {
        return Err(no_descriptors(why));
    }
    let offers: Result<Vec<Offer>, String> = mine.iter().map(|fd| offer(*fd)).collect();
    let offers = boot.all_gather(step, &write(&offers))?;
    let opened = offers.iter().enumerate().map(|(rank, bytes)| {
        let offers: Result<Vec<Offer>, String> = read(bytes);
        offers
            .and_then(|offers| offers.iter().map(|o| open(identities[rank].pid(), o)).collect())
            .map_err(|why| format!("of rank {rank}: {why}"))
    });
    let opened: Result<Vec<Vec<OwnedFd>>, String> = opened.collect();
    // Also keeps every rank's descriptors open until all have opened them.
    let votes = boot.all_gather(step, &write(&opened.as_ref().map(|_| ())))?;
    let refused = votes.iter().enumerate().find_map(|(rank, vote)| {
        let why = read::<()>(vote).err()?;
        Some(format!("rank {rank} cannot open one {why}"))
    });
    match (opened, refused) {
        (Ok(opened), None) => Ok(opened),
        (_, Some(why)) | (Err(why), None) => Err(no_descriptors(why)),
    }
}

/// The first rank whose process rank 0 cannot see, and why.
fn hidden(identities: &[Identity]) -> Option<String> {
    let first = identities.first()?;
    identities.iter().enumerate().find_map(|(rank, other)| {
        first
            .hides(other)
            .map(|why| format!("rank {rank} ({}) is {why} than rank 0", other.label()))
    })
}

fn offer(fd: BorrowedFd<'_>) -> Result<Offer, String> {
    let stat = rustix::fs::fstat(fd).map_err(|e| e.to_string())?;
    let flags = rustix::fs::fcntl_getfl(fd).map_err(|e| e.to_string())?;
    let writable = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    Ok(Offer { number: fd.as_raw_fd(), device: stat.st_dev, inode: stat.st_ino, writable })
}

fn open(pid: u32, offer: &Offer) -> Result<OwnedFd, String> {
    let path = format!("/proc/{pid}/fd/{}", offer.number);
    let access = if offer.writable { OFlags::RDWR } else { OFlags::RDONLY };
    let fd = rustix::fs::open(&path, access | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| format!("{path}: {e}"))?;
    let stat = rustix::fs::fstat(fd.as_fd()).map_err(|e| format!("{path}: {e}"))?;
    if (stat.st_dev, stat.st_ino) != (offer.device, offer.inode) {
        let found = fs::read_link(&path).map(|p| p.display().to_string()).unwrap_or_default();
        return Err(format!("{path} is another file ({found}) than the one offered"));
    }
    Ok(fd)
}

fn write<T: Serialize>(value: &Result<T, impl Serialize>) -> Vec<u8> {
    postcard::to_stdvec(value).expect("numbers and strings can always be written to memory")
}

fn read<T: for<'d> Deserialize<'d>>(bytes: &[u8]) -> Result<T, String> {
    postcard::from_bytes::<Result<T, String>>(bytes).unwrap_or_else(|e| Err(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_under_the_number_is_found_out() {
        let (a, b) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut lie = offer(a.as_fd()).unwrap();
        assert!(open(std::process::id(), &lie).is_ok());
        lie.number = b.as_raw_fd();
        let why = open(std::process::id(), &lie).unwrap_err();
        assert!(why.contains("is another file"), "{why}");
    }
}
