//! Signals to this process while a job runs.

use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{SendFlags, send};
use rustix::process::Signal;
use signal_hook_registry::{SigId, register_sigaction, unregister};

use super::LauncherError;
use super::outcome::Sender;

/// What asks for a job's end. Batch systems warn by the last ones of a limit that a job is about to reach;
/// each would end this process, and leave behind what the job has made.
pub(super) const CAUGHT: [(Signal, &str); 7] = [
    (Signal::INT, "SIGINT"),
    (Signal::TERM, "SIGTERM"),
    (Signal::HUP, "SIGHUP"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::ALARM, "SIGALRM"),
];

/// What a handler says: the signal, whether the kernel sent it, and the process that did.
const MESSAGE_BYTES: usize = 6;

/// A code that says that no process has sent a signal: Linux, `SI_KERNEL` of sigaction(2). The
/// kernel sends these where keys are typed at a terminal, where that is closed, and when an alarm is due
/// that was set before this program was started.
const FROM_KERNEL: i32 = 0x80;

/// Caught until dropped.
pub(super) struct Signals {
    handlers: Vec<SigId>,
    told: UnixDatagram,
}

impl Signals {
    pub(super) fn catch() -> Result<Self, LauncherError> {
        let failed = |signal: Signal| {
            move |source| LauncherError::Prepare {
                what: format!("catch signal {}", signal.as_raw()),
                source,
            }
        };
        let (told, tell) = UnixDatagram::pair().map_err(failed(Signal::INT))?;
        told.set_nonblocking(true).map_err(failed(Signal::INT))?;
        let mut signals = Signals { handlers: Vec::new(), told };
        for (signal, _) in CAUGHT {
            let tell = tell.try_clone().map_err(failed(signal))?;
            signals.handlers.push(register(signal, tell).map_err(failed(signal))?);
        }
        Ok(signals)
    }

    pub(super) fn interest(&self) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.told.as_fd(), PollFlags::IN)
    }

    /// Those that came since the last call, and who sent them.
    pub(super) fn take(&self) -> Vec<(Signal, Sender)> {
        let mut came = Vec::new();
        let mut message = [0; MESSAGE_BYTES];
        while matches!(self.told.recv(&mut message), Ok(MESSAGE_BYTES)) {
            let [number, is_from_kernel, pid @ ..] = message;
            let is_it = |signal: &Signal| signal.as_raw() == i32::from(number);
            let signal = CAUGHT.into_iter().map(|(signal, _)| signal).find(is_it);
            let sender = match (is_from_kernel, u32::from_ne_bytes(pid)) {
                (1, _) if signal == Some(Signal::ALARM) => Sender::Alarm,
                (1, _) => Sender::Terminal,
                // Of a process that has no number here the kernel says 0.
                (_, 0) => Sender::Outside,
                (_, pid) => Sender::process(pid),
            };
            came.extend(signal.map(|signal| (signal, sender)));
        }
        came
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in &self.handlers {
            unregister(*handler);
        }
    }
}

fn register(signal: Signal, tell: UnixDatagram) -> std::io::Result<SigId> {
    let number = signal.as_raw() as u8;
    // SAFETY: the closure copies a few bytes and makes one system call that does not block, and that
    // leaves the interrupted thread's `errno` as it was: it is made without the C library. The sender is
    // the member for signals that processes send, and a number in any case.
    unsafe {
        register_sigaction(signal.as_raw(), move |info| {
            let [a, b, c, d] = info.si_pid().to_ne_bytes();
            let message = [number, u8::from(info.si_code == FROM_KERNEL), a, b, c, d];
            // One that finds no room is one of hundreds that nobody has read yet.
            let _ = send(&tell, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        })
    }
}
