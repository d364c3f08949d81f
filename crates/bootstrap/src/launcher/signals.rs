//! Signals to this process while a job runs.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use super::LauncherError;

/// Caught until dropped.
pub(super) struct Signals {
    caught: Vec<(Signal, SigId, UnixStream)>,
}

impl Signals {
    pub(super) fn catch() -> Result<Self, LauncherError> {
        let mut signals = Signals { caught: Vec::new() };
        for (number, signal) in
            [(SIGINT, Signal::INT), (SIGTERM, Signal::TERM), (SIGHUP, Signal::HUP)]
        {
            let (id, stream) = register(number).map_err(|source| LauncherError::Prepare {
                what: format!("catch signal {number}"),
                source,
            })?;
            signals.caught.push((signal, id, stream));
        }
        Ok(signals)
    }

    pub(super) fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.caught
            .iter()
            .map(|(.., stream)| PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN))
    }

    /// Those that came since the last call.
    pub(super) fn take(&self) -> Vec<Signal> {
        let came = self.caught.iter().filter(|(.., stream)| {
            let mut stream = stream;
            matches!(stream.read(&mut [0; 64]), Ok(1..))
        });
        came.map(|(signal, ..)| *signal).collect()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (_, id, _) in &self.caught {
            unregister(*id);
        }
    }
}

fn register(number: i32) -> std::io::Result<(SigId, UnixStream)> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    Ok((pipe::register(number, write)?, read))
}
