//! Signs of life and last words, over TCP between every two ranks, beside MPI: a library of MPI says
//! neither that a peer's process has ended nor why a peer gave up, and an abort must arrive where MPI
//! is stuck.
//!
//! A connection that closes without a goodbye is a rank that was lost, however its process ended.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crossover_core::verdict::Verdict;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A rank's connections to all others.
pub(crate) struct Watch {
    rank: u32,
    /// In rank order; none to itself.
    peers: Vec<Option<TcpStream>>,
    heard: Mutex<Vec<Heard>>,
    /// What this rank itself has ended the group with.
    said: OnceLock<Verdict>,
    /// Has this rank said goodbye?
    left: AtomicBool,
    /// The process that connected: a child that was forked since has no part in it.
    process: u32,
}

/// What has come from a peer.
#[derive(Clone, Default)]
struct Heard {
    bytes: Vec<u8>,
    goodbye: bool,
    closed: bool,
}

/// What a look around found.
pub(crate) enum News {
    /// The group has ended.
    Ended(Verdict),
    /// A rank is gone, without a word.
    Gone { rank: u32, how: &'static str },
}

impl Watch {
    /// Over connections to all others, in rank order.
    pub(crate) fn new(rank: u32, peers: Vec<Option<TcpStream>>) -> Watch {
        let heard = Mutex::new(vec![Heard::default(); peers.len()]);
        let (said, left, process) = (OnceLock::new(), AtomicBool::new(false), std::process::id());
        Watch { rank, peers, heard, said, left, process }
    }

    /// What has happened, if anything. Does not wait.
    pub(crate) fn look(&self) -> Option<News> {
        if let Some(said) = self.said.get() {
            return Some(News::Ended(said.clone()));
        }
        let mut heard = self.heard();
        let open: Vec<usize> =
            (0..self.peers.len()).filter(|rank| self.is_open(*rank, &heard)).collect();
        let mut fds: Vec<PollFd<'_>> = open
            .iter()
            .filter_map(|rank| self.peers[*rank].as_ref())
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        // An interrupted poll says nothing; whoever waits asks again.
        if poll(&mut fds, Some(&Timespec::default())).unwrap_or(0) > 0 {
            for (rank, fd) in open.iter().zip(&fds) {
                if !fd.revents().is_empty() {
                    self.hear(*rank, &mut heard[*rank]);
                }
            }
        }
        let verdicts = (0..).zip(heard.iter_mut()).find_map(|(rank, heard)| heard.verdict(rank));
        if let Some(verdict) = verdicts {
            // Later looks find it as well.
            let _ = self.said.set(verdict.clone());
            return Some(News::Ended(verdict));
        }
        let gone = heard.iter().position(|heard| heard.closed && !heard.goodbye)?;
        let how = "its process ended, or it dropped the group";
        Some(News::Gone { rank: gone as u32, how })
    }

    /// Tells every peer how the group ended, unless it has ended already or this rank has left it, and says
    /// whether it did. Never waits: a peer that takes no more has its own deadline.
    pub(crate) fn end(&self, verdict: Verdict) -> bool {
        let told = verdict.encode();
        let ends = !self.left.load(Acquire) && self.said.set(verdict).is_ok();
        if ends {
            self.say(&[&(told.len() as u32).to_le_bytes()[..], &told].concat());
        }
        ends
    }

    /// Tells every peer that this rank leaves in peace.
    pub(crate) fn say_goodbye(&self) {
        self.left.store(true, Release);
        self.say(&0u32.to_le_bytes());
    }

    /// Closes all connections, whoever still holds this. A forked child's are its parent's as well: it closes
    /// no more than its own descriptors, when it drops this.
    pub(crate) fn hang_up(&self) {
        if std::process::id() != self.process {
            return;
        }
        for peer in self.peers.iter().flatten() {
            let _ = peer.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    fn say(&self, frame: &[u8]) {
        for mut peer in self.peers.iter().flatten() {
            let _ = peer.write(frame);
        }
    }

    fn heard(&self) -> MutexGuard<'_, Vec<Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self, rank: usize, heard: &[Heard]) -> bool {
        self.peers[rank].is_some() && !heard[rank].closed
    }

    fn hear(&self, rank: usize, heard: &mut Heard) {
        let Some(mut socket) = self.peers[rank].as_ref() else { return };
        let mut bytes = [0; 4096]; // size: of a read
        loop {
            match socket.read(&mut bytes) {
                Ok(0) => heard.closed = true,
                Ok(count) => {
                    heard.bytes.extend_from_slice(&bytes[..count]);
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => heard.closed = true,
            }
            return;
        }
    }
}

impl Heard {
    /// The verdict that has come from `rank`, whole. Takes a goodbye in.
    fn verdict(&mut self, rank: u32) -> Option<Verdict> {
        while let Some((length, rest)) = self.bytes.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            if length == 0 {
                self.goodbye = true;
                self.bytes.drain(..4);
                continue;
            }
            // What announces anything else is no rank of this group.
            if length != Verdict::BYTES {
                self.closed = true;
                self.bytes.clear();
                return None;
            }
            return Some(Verdict::decode(rest.get(..length)?, rank));
        }
        None
    }
}

#[cfg(test)]
#[path = "watch/tests.rs"]
mod tests;
