//! Who is still there. Each rank holds the write end of a pipe and gives every peer a read end;
//! the kernel hangs up when the last write end is gone, however its process ended. No process id
//! is involved, so it works across pid namespaces.

use std::os::fd::OwnedFd;

use crossover_core::agreement::StepError;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;

/// The own sign of life and the peers'.
pub struct Liveness {
    /// Nothing is ever written; that it is open is the message.
    _alive: Alive,
    /// Read ends, in rank order; the own one too.
    peers: Vec<OwnedFd>,
}

/// The write end: this rank is there for as long as it is open. Not inherited over `exec`.
pub struct Alive(#[expect(dead_code, reason = "held, so as to be closed")] OwnedFd);

/// A sign of life and the end that peers watch, to be passed to each of them.
///
/// # Errors
///
/// The process has no descriptors left.
pub fn pipe() -> Result<(Alive, OwnedFd), StepError> {
    match rustix::pipe::pipe_with(PipeFlags::CLOEXEC) {
        Ok((read, write)) => Ok((Alive(write), read)),
        Err(e) => Err(StepError(format!("pipe failed: {e}"))),
    }
}

impl Liveness {
    /// From the own sign of life and what every rank passed, in rank order, the own end too.
    pub fn new(alive: Alive, peers: Vec<OwnedFd>) -> Self {
        Liveness { _alive: alive, peers }
    }

    /// Has this rank's process ended, or dropped its session? Does not wait.
    pub fn is_gone(&self, rank: u32) -> bool {
        let mut fds = [PollFd::new(&self.peers[rank as usize], PollFlags::empty())];
        // An interrupted poll says nothing; whoever waits asks again.
        let ready = rustix::event::poll(&mut fds, Some(&Timespec::default()));
        ready.is_ok() && fds[0].revents().contains(PollFlags::HUP)
    }
}
