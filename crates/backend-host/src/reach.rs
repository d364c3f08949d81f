//! Reading peers' own memory through the kernel (`process_vm_readv`, also known as cross-memory
//! attach): one copy where shared memory takes two.
//!
//! The kernel lets a process do that if it might also trace the other: the same user, no security
//! module in between, one pid namespace. Whether it does is found out by doing it, on every rank,
//! when the group forms.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

use crossover_core::agreement::StepError;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Something to read in a process, and what it reads.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pid: u32,
    at: u64,
    mark: u64,
}

impl Place {
    /// In this process.
    pub(crate) fn here() -> Self {
        static MARK: OnceLock<u64> = OnceLock::new();
        // Random, so that a stranger with the same number in another pid namespace is no peer.
        let mark = MARK.get_or_init(|| RandomState::new().build_hasher().finish());
        Place { pid: std::process::id(), at: std::ptr::from_ref(mark) as u64, mark: *mark }
    }
}

/// The processes of a group's ranks, each of which this one may read.
pub(crate) struct Reach(Vec<libc::pid_t>);

impl Reach {
    /// Reads every rank's place.
    pub(crate) fn new(places: &[Place]) -> Result<Self, StepError> {
        let reach = Reach(places.iter().map(|place| place.pid as libc::pid_t).collect());
        for (rank, place) in (0..).zip(places) {
            let mut found = 0u64;
            let (to, len) = ((&raw mut found).cast(), size_of_val(&found));
            // SAFETY: a number of this function's own.
            unsafe { reach.read(rank, place.at, to, len) }.map_err(|e| refused(rank, place, e))?;
            if found != place.mark {
                return Err(StepError(format!(
                    "process {} here is not rank {rank}: they have pid namespaces of their own",
                    place.pid
                )));
            }
        }
        Ok(reach)
    }

    /// Copies `len` bytes that lie at `from` in the process of `rank`.
    ///
    /// # Errors
    ///
    /// `SRCH`: the process has ended. `FAULT`: it has nothing there.
    ///
    /// # Safety
    ///
    /// `len` bytes can be written at `to`.
    pub(crate) unsafe fn read(
        &self,
        rank: u32,
        from: u64,
        to: *mut u8,
        len: usize,
    ) -> Result<(), Errno> {
        let pid = self.0[rank as usize];
        let mut done = 0;
        while done < len {
            let left = len - done;
            let there = (from as usize).wrapping_add(done) as *mut libc::c_void;
            let remote = libc::iovec { iov_base: there, iov_len: left };
            let here = to.wrapping_add(done).cast();
            let local = libc::iovec { iov_base: here, iov_len: left };
            // SAFETY: the caller's promise about `to`; of the other process's memory the kernel
            // itself sees what can be read.
            match unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) } {
                // It reads fewer bytes than asked where the rest is not there.
                0 => return Err(Errno::FAULT),
                n if n > 0 => done += n as usize,
                _ => match std::io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => {}
                    errno => return Err(Errno::from_raw_os_error(errno.unwrap_or(libc::EIO))),
                },
            }
        }
        Ok(())
    }
}

fn refused(rank: u32, place: &Place, errno: Errno) -> StepError {
    let hint = match errno {
        Errno::PERM => {
            "; the kernel lets a process read another that it might trace: the same \
             user, kernel.yama.ptrace_scope = 0, in a container the capability SYS_PTRACE"
        }
        Errno::SRCH => "; ranks in pid namespaces of their own cannot",
        Errno::NOSYS => "; the kernel or a seccomp filter leaves it out",
        _ => "",
    };
    let pid = place.pid;
    StepError(format!("process_vm_readv of rank {rank} (process {pid}) failed: {errno}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there_and_refuses_what_is_not() {
        let reach = Reach::new(&[Place::here()]).unwrap();
        let there: Vec<u8> = (0..100_000).map(|i| (i % 251) as u8).collect();
        let mut here = vec![0; there.len()];
        // SAFETY: `here` is as long.
        unsafe { reach.read(0, there.as_ptr() as u64, here.as_mut_ptr(), here.len()) }.unwrap();
        assert_eq!(here, there);
        // SAFETY: as above.
        let nowhere = unsafe { reach.read(0, 8, here.as_mut_ptr(), 8) };
        assert_eq!(nowhere, Err(Errno::FAULT));
        // SAFETY: as above; no process has this number.
        let nobody = unsafe { Reach(vec![i32::MAX]).read(0, 8, here.as_mut_ptr(), 8) };
        assert_eq!(nobody, Err(Errno::SRCH));
    }

    #[test]
    fn a_process_with_another_mark_is_a_stranger() {
        let mut place = Place::here();
        place.mark += 1;
        let error = Reach::new(&[Place::here(), place]).err().unwrap().to_string();
        assert!(error.contains("is not rank 1"), "{error}");
    }
}
