//! One peer's socket: frames in and out without blocking, descriptors beside them.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::frame::{self, FrameError, MAX_DESCRIPTORS, Message};

/// The kernel passes at most 253 descriptors (SCM_MAX_FD) with one message.
const DESCRIPTORS_PER_SEND: usize = 200;
const READ_AT_ONCE: usize = 64 << 10;

const CLOSED: &str = "connection closed";

/// A connected stream socket, Unix or TCP.
pub(crate) struct Conn {
    socket: OwnedFd,
    input: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
    output: VecDeque<Outgoing>,
    /// Why nothing more will come, once that is known.
    closed: Option<String>,
}

/// A frame under way. Shared, because rank 0 sends the same one to all.
struct Outgoing {
    frame: Arc<Vec<u8>>,
    sent: usize,
    descriptors: Arc<Vec<OwnedFd>>,
    passed: usize,
}

impl Conn {
    /// Takes a connected socket over; it must not block.
    pub(crate) fn new(socket: OwnedFd) -> std::io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Conn {
            socket,
            input: Vec::new(),
            descriptors: VecDeque::new(),
            output: VecDeque::new(),
            closed: None,
        })
    }

    /// Queues a frame.
    pub(crate) fn queue(&mut self, frame: Arc<Vec<u8>>, descriptors: Arc<Vec<OwnedFd>>) {
        self.output.push_back(Outgoing { frame, sent: 0, descriptors, passed: 0 });
    }

    /// Queues a message that always has a frame: all but exchanged bodies are small.
    pub(crate) fn say(&mut self, message: &Message) {
        if let Ok(frame) = frame::encode(message) {
            self.queue(Arc::new(frame), Arc::default());
        }
    }

    /// Is all that was queued with the kernel?
    pub(crate) fn is_flushed(&self) -> bool {
        self.output.is_empty()
    }

    /// Why the peer can say no more; frames that came before may still be there.
    pub(crate) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// This end's address; none of a Unix socket.
    pub(crate) fn own_address(&self) -> Option<IpAddr> {
        let address = SocketAddr::try_from(rustix::net::getsockname(&self.socket).ok()?).ok()?;
        Some(address.ip().to_canonical())
    }

    /// The folder of the Unix socket that was connected to.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        use rustix::net::{SocketAddrUnix, getpeername, getsockname};
        // Whoever took the connection has the name, and the other end sees it.
        let ends = [getsockname(&self.socket).ok(), getpeername(&self.socket).ok().flatten()];
        ends.into_iter().flatten().find_map(|end| {
            let end = SocketAddrUnix::try_from(end).ok()?;
            let path = end.path()?;
            let folder = Path::new(OsStr::from_bytes(path.to_bytes())).parent();
            folder.map(Path::to_owned)
        })
    }

    /// What to wait for.
    pub(crate) fn interest(&self) -> PollFd<'_> {
        let mut flags = PollFlags::empty();
        if self.closed.is_none() {
            flags |= PollFlags::IN;
        }
        if !self.output.is_empty() {
            flags |= PollFlags::OUT;
        }
        PollFd::from_borrowed_fd(self.socket.as_fd(), flags)
    }

    /// Moves what can be moved now, both ways.
    pub(crate) fn advance(&mut self) {
        let unsent = self.send().err();
        while self.closed.is_none() {
            match self.receive() {
                Ok(0) => self.closed = Some(CLOSED.to_owned()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(e) => self.close(e),
            }
        }
        // After reading: a peer that takes no more may have said why.
        if let Some(e) = unsent {
            self.output.clear();
            self.close(e);
        }
    }

    /// The next whole frame that has come.
    pub(crate) fn next(&mut self, limit: usize) -> Result<Option<Message>, FrameError> {
        let Some((message, used)) = frame::parse(&self.input, limit)? else { return Ok(None) };
        self.input.drain(..used);
        Ok(Some(message))
    }

    /// Takes `count` descriptors that came with the frames read so far.
    pub(crate) fn take_descriptors(&mut self, count: usize) -> Result<Vec<OwnedFd>, FrameError> {
        let came = self.descriptors.len();
        if count > came {
            let what = format!("it announced {count} descriptors, and {came} came");
            return Err(FrameError::Malformed(what));
        }
        Ok(self.descriptors.drain(..count).collect())
    }

    fn close(&mut self, why: Errno) {
        let how = match why {
            // Whether the peer's last bytes were read makes these differ from an orderly end.
            Errno::CONNRESET | Errno::PIPE => CLOSED.to_owned(),
            Errno::TOOMANYREFS => "too many descriptors are in flight".to_owned(),
            other => other.to_string(),
        };
        self.closed.get_or_insert(how);
    }

    fn send(&mut self) -> Result<(), Errno> {
        while let Some(out) = self.output.front_mut() {
            let rest: Vec<BorrowedFd<'_>> = out.descriptors[out.passed..]
                .iter()
                .take(DESCRIPTORS_PER_SEND)
                .map(AsFd::as_fd)
                .collect();
            // Descriptors ride on single bytes; a frame's header has more bytes than batches.
            let end = if rest.is_empty() { out.frame.len() } else { out.sent + 1 };
            let bytes = &out.frame[out.sent..end];
            match send_some(self.socket.as_fd(), bytes, &rest) {
                Ok(sent) => {
                    out.sent += sent;
                    out.passed += rest.len();
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e),
            }
            if out.sent == out.frame.len() {
                self.output.pop_front();
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<usize, Errno> {
        let start = self.input.len();
        self.input.resize(start + READ_AT_ONCE, 0);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut buffers = [IoSliceMut::new(&mut self.input[start..])];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let came = recvmsg(&self.socket, &mut buffers, &mut control, flags);
        let bytes = came.as_ref().map_or(0, |came| came.bytes);
        self.input.truncate(start + bytes);
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        // The peer keeps to the bound; a stranger's surplus is closed at once.
        self.descriptors.truncate(MAX_DESCRIPTORS);
        if came?.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Errno::MFILE);
        }
        Ok(bytes)
    }
}

/// Waits until one of the sockets can move, or until `until`. Failures to wait show up as
/// failures to move.
pub(crate) fn wait(sockets: &mut [PollFd<'_>], until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    // Rounded up: waking just before the deadline would spin.
    let left = left + Duration::from_micros(100);
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    let _ = poll(sockets, Some(&left));
}

fn send_some(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_PER_SEND))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::Conn;

    #[test]
    fn both_ends_know_the_folder_of_their_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let near = Conn::new(UnixStream::connect(&path).unwrap().into()).unwrap();
        let far = Conn::new(listener.accept().unwrap().0.into()).unwrap();
        for conn in [near, far] {
            assert_eq!(conn.folder().as_deref(), Some(folder.path()));
        }
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(Conn::new(one.into()).unwrap().folder(), None);
    }
}
