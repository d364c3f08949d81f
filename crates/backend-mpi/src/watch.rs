//! Signs of life and last words, over TCP between every two ranks, beside MPI: a library of MPI says
//! neither that a peer's process has ended nor why a peer gave up, and an abort must arrive where MPI
//! is stuck.
//!
//! A connection that closes without a goodbye is a rank that was lost, however its process ended.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crossover_bootstrap::own_addresses;
use crossover_core::agreement::StepError;
use crossover_core::bootstrap::ranks_in_words;
use crossover_core::verdict::Verdict;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long one address of a peer is tried.
const ONE_ADDRESS: Duration = Duration::from_secs(2);
/// Longer than any verdict: what announces more is no rank of this group.
const LONGEST: usize = 64 * 1024; // size: of a sentence that names all ranks, and more

/// A rank's connections to all others.
pub(crate) struct Watch {
    rank: u32,
    /// In rank order; none to itself.
    peers: Vec<Option<TcpStream>>,
    heard: Mutex<Vec<Heard>>,
    /// What this rank itself has ended the group with.
    said: OnceLock<Verdict>,
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

/// Begins to listen, and says where.
pub(crate) fn listen() -> Result<(TcpListener, Vec<SocketAddr>), StepError> {
    let everywhere = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0));
    let listener = everywhere
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
        .map_err(|e| StepError(format!("it cannot listen on TCP: {e}")))?;
    let port = listener.local_addr().map_err(StepError::new)?.port();
    // Last the one that only ranks of this node reach: a node can have no other.
    let all = own_addresses().into_iter().chain([Ipv4Addr::LOCALHOST.into()]);
    Ok((listener, all.map(|ip| SocketAddr::new(ip, port)).collect()))
}

/// Who is who while connections are made.
pub(crate) struct Party {
    pub(crate) rank: u32,
    /// Where each listens, in rank order.
    pub(crate) addresses: Vec<Vec<SocketAddr>>,
    /// What each is known by, in rank order.
    pub(crate) nonces: Vec<u64>,
    pub(crate) deadline: Duration,
}

/// Connects to every lower rank while every higher one connects to this.
pub(crate) fn connect(listener: &TcpListener, party: &Party) -> Result<Watch, StepError> {
    let until = Instant::now() + party.deadline;
    let rank = party.rank as usize;
    let (lower, higher) = std::thread::scope(|scope| {
        let higher = scope.spawn(|| accept(listener, party, until));
        let lower: Result<Vec<TcpStream>, StepError> =
            (0..rank).map(|peer| dial(party, peer, until)).collect();
        (lower, higher.join())
    });
    let mut peers: Vec<Option<TcpStream>> = lower?.into_iter().map(Some).collect();
    peers.push(None);
    let higher = higher.map_err(|_| StepError::new("it panicked while it listened"))??;
    peers.extend(higher.into_iter().map(Some));
    for peer in peers.iter().flatten() {
        peer.set_nonblocking(true).map_err(StepError::new)?;
        // A last word is not held back for a second one.
        peer.set_nodelay(true).map_err(StepError::new)?;
    }
    let heard = Mutex::new(vec![Heard::default(); peers.len()]);
    Ok(Watch { rank: party.rank, peers, heard, said: OnceLock::new() })
}

/// A greeting: the nonce of the one who is greeted, and the greeter's rank.
const GREETING: usize = 12;

fn dial(party: &Party, peer: usize, until: Instant) -> Result<TcpStream, StepError> {
    let mut why = Vec::new();
    for address in &party.addresses[peer] {
        match greet(party, peer, address, until) {
            Ok(socket) => return Ok(socket),
            Err(e) => why.push(format!("{address}: {e}")),
        }
    }
    Err(StepError(format!(
        "rank {peer} is not reached by TCP ({}): let the nodes connect to one another",
        why.join("; ")
    )))
}

fn greet(
    party: &Party,
    peer: usize,
    address: &SocketAddr,
    until: Instant,
) -> std::io::Result<TcpStream> {
    let left = until.saturating_duration_since(Instant::now());
    let patience = left.min(ONE_ADDRESS).max(Duration::from_millis(1));
    let mut socket = TcpStream::connect_timeout(address, patience)?;
    socket.set_read_timeout(Some(patience))?;
    let mut greeting = [0; GREETING];
    greeting[..8].copy_from_slice(&party.nonces[peer].to_le_bytes());
    greeting[8..].copy_from_slice(&party.rank.to_le_bytes());
    socket.write_all(&greeting)?;
    let mut answer = [0; 8];
    socket.read_exact(&mut answer)?;
    if u64::from_le_bytes(answer) != party.nonces[party.rank as usize] {
        return Err(std::io::Error::other("it is somebody else"));
    }
    Ok(socket)
}

/// The higher ranks' connections, in rank order.
fn accept(
    listener: &TcpListener,
    party: &Party,
    until: Instant,
) -> Result<Vec<TcpStream>, StepError> {
    listener.set_nonblocking(true).map_err(StepError::new)?;
    let first = party.rank as usize + 1;
    let mut higher: Vec<Option<TcpStream>> = (first..party.addresses.len()).map(|_| None).collect();
    while higher.iter().any(Option::is_none) {
        match listener.accept() {
            // Who does not greet is no rank, and none of them waits for it.
            Ok((socket, _)) => {
                if let Some((rank, socket)) = welcome(socket, party)
                    && let Some(place) = higher.get_mut(rank - first)
                {
                    *place = Some(socket);
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let missing = (first as u32..).zip(&higher).filter(|(_, came)| came.is_none());
                let missing: Vec<u32> = missing.map(|(rank, _)| rank).collect();
                let (who, waited) = (ranks_in_words(&missing), party.deadline);
                return Err(StepError(format!("{who} did not connect by TCP within {waited:.1?}")));
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(StepError(format!("it cannot accept a connection: {e}"))),
        }
    }
    Ok(higher.into_iter().flatten().collect())
}

fn welcome(mut socket: TcpStream, party: &Party) -> Option<(usize, TcpStream)> {
    socket.set_nonblocking(false).ok()?;
    socket.set_read_timeout(Some(ONE_ADDRESS)).ok()?;
    let mut greeting = [0; GREETING];
    socket.read_exact(&mut greeting).ok()?;
    let (nonce, rank) = greeting.split_at(8);
    let rank = u32::from_le_bytes(rank.try_into().ok()?);
    let own = party.nonces[party.rank as usize];
    if u64::from_le_bytes(nonce.try_into().ok()?) != own || rank <= party.rank {
        return None;
    }
    let theirs = party.nonces.get(rank as usize)?;
    socket.write_all(&theirs.to_le_bytes()).ok()?;
    Some((rank as usize, socket))
}

impl Watch {
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
        if let Some(verdict) = heard.iter_mut().find_map(Heard::verdict) {
            // Later looks find it as well.
            let _ = self.said.set(verdict.clone());
            return Some(News::Ended(verdict));
        }
        let gone = heard.iter().position(|heard| heard.closed && !heard.goodbye)?;
        let how = "its process ended, or it dropped the group";
        Some(News::Gone { rank: gone as u32, how })
    }

    /// Tells every peer how the group ended, unless it has ended already. Never waits: a peer that takes no
    /// more has its own deadline.
    pub(crate) fn end(&self, verdict: Verdict) {
        let mut told = postcard::to_stdvec(&verdict).unwrap_or_default();
        if self.said.set(verdict).is_ok() {
            let mut frame = (told.len() as u32).to_le_bytes().to_vec();
            frame.append(&mut told);
            self.say(&frame);
        }
    }

    /// Tells every peer that this rank leaves in peace.
    pub(crate) fn say_goodbye(&self) {
        self.say(&0u32.to_le_bytes());
    }

    /// Closes all connections, whoever still holds this.
    pub(crate) fn hang_up(&self) {
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
    /// The verdict that has come, whole. Takes a goodbye in.
    fn verdict(&mut self) -> Option<Verdict> {
        while let Some((length, rest)) = self.bytes.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            if length == 0 {
                self.goodbye = true;
                self.bytes.drain(..4);
                continue;
            }
            if length > LONGEST {
                self.closed = true;
                self.bytes.clear();
                return None;
            }
            return postcard::from_bytes(rest.get(..length)?).ok();
        }
        None
    }
}

#[cfg(test)]
#[path = "watch/tests.rs"]
mod tests;
