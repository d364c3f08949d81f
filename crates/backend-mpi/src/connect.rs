//! The connections of a [`Watch`], over TCP: every rank connects to every lower one.
//!
//! Anybody may connect to a port. A connection is a rank's once three words went over it: a greeting
//! that only the ranks know, its answer, and that the answer has come. Who gave up on an
//! address before it was answered says no third word, and so what he left behind is not kept.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crossover_bootstrap::own_addresses;
use crossover_core::agreement::StepError;
use crossover_core::bootstrap::ranks_in_words;

use crate::watch::Watch;

/// How long one address of a peer is tried.
const ONE_ADDRESS: Duration = Duration::from_secs(2);
/// Between two looks at who connects.
const NAP: Duration = Duration::from_millis(1);
/// A greeting: the nonce of the one who is greeted, and the greeter's rank.
const GREETING: usize = 12;
/// The third word.
const TAKEN: u8 = 1;

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
    Ok(Watch::new(party.rank, peers))
}

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
    let until = until.min(Instant::now() + ONE_ADDRESS);
    let mut socket = TcpStream::connect_timeout(address, left(until)?)?;
    let mut greeting = [0; GREETING];
    greeting[..8].copy_from_slice(&party.nonces[peer].to_le_bytes());
    greeting[8..].copy_from_slice(&party.rank.to_le_bytes());
    socket.write_all(&greeting)?;
    let (mut answer, mut came) = ([0; 8], 0);
    while came < answer.len() {
        // Of all reads together: what trickles in is late as well.
        socket.set_read_timeout(Some(left(until)?))?;
        match socket.read(&mut answer[came..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => came += count,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    if u64::from_le_bytes(answer) != party.nonces[party.rank as usize] {
        return Err(Error::other("it is somebody else"));
    }
    socket.write_all(&[TAKEN])?;
    Ok(socket)
}

fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The higher ranks' connections, in rank order. Nobody waits here for one of them: a stranger's may be
/// silent.
fn accept(
    listener: &TcpListener,
    party: &Party,
    until: Instant,
) -> Result<Vec<TcpStream>, StepError> {
    listener.set_nonblocking(true).map_err(StepError::new)?;
    let first = party.rank as usize + 1;
    let mut higher: Vec<Option<TcpStream>> = (first..party.addresses.len()).map(|_| None).collect();
    let mut newcomers: Vec<Newcomer> = Vec::new();
    while higher.iter().any(Option::is_none) {
        if Instant::now() >= until {
            let missing = (first as u32..).zip(&higher).filter(|(_, came)| came.is_none());
            let missing: Vec<u32> = missing.map(|(rank, _)| rank).collect();
            let (who, waited) = (ranks_in_words(&missing), party.deadline);
            return Err(StepError(format!("{who} did not connect by TCP within {waited:.1?}")));
        }
        match listener.accept() {
            Ok((socket, _)) => newcomers.extend(Newcomer::new(socket)),
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(NAP),
            // One that was closed while it queued.
            Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(StepError(format!("it cannot accept a connection: {e}"))),
        }
        let waiting = std::mem::take(&mut newcomers);
        for mut newcomer in waiting {
            match newcomer.hear(party) {
                Heard::Little => newcomers.push(newcomer),
                Heard::Rank(rank) => higher[rank - first] = Some(newcomer.socket),
                Heard::Stranger => {}
            }
        }
    }
    Ok(higher.into_iter().flatten().collect())
}

/// A connection of somebody's.
struct Newcomer {
    socket: TcpStream,
    /// The greeting and the third word, as far as they have come.
    words: [u8; GREETING + 1],
    came: usize,
    /// Who it is, once the greeting was answered.
    rank: Option<usize>,
}

/// What a newcomer has said.
enum Heard {
    /// Less than it takes.
    Little,
    /// That it is this rank, and holds the connection.
    Rank(usize),
    /// What no rank says, or nothing more.
    Stranger,
}

impl Newcomer {
    fn new(socket: TcpStream) -> Option<Newcomer> {
        socket.set_nonblocking(true).ok()?;
        Some(Newcomer { socket, words: [0; GREETING + 1], came: 0, rank: None })
    }

    /// Takes in what has come, and answers a greeting. Does not wait.
    fn hear(&mut self, party: &Party) -> Heard {
        loop {
            match (self.came, self.rank) {
                (GREETING, None) => match self.answer(party) {
                    Some(rank) => self.rank = Some(rank),
                    None => return Heard::Stranger,
                },
                (came, Some(rank)) if came == self.words.len() => {
                    return if self.words[GREETING] == TAKEN {
                        Heard::Rank(rank)
                    } else {
                        Heard::Stranger
                    };
                }
                _ => {}
            }
            // What follows the third word is the watch's.
            let end = GREETING + usize::from(self.rank.is_some());
            match self.socket.read(&mut self.words[self.came..end]) {
                Ok(0) => return Heard::Stranger,
                Ok(count) => self.came += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Heard::Little,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Stranger,
            }
        }
    }

    /// Answers the greeting of a higher rank, and says which it is.
    fn answer(&mut self, party: &Party) -> Option<usize> {
        let (nonce, rank) = self.words[..GREETING].split_at(8);
        let rank = u32::from_le_bytes(rank.try_into().ok()?);
        let own = party.nonces[party.rank as usize];
        if u64::from_le_bytes(nonce.try_into().ok()?) != own || rank <= party.rank {
            return None;
        }
        let theirs = party.nonces.get(rank as usize)?;
        // Nothing was sent before: there is room for so little.
        self.socket.write_all(&theirs.to_le_bytes()).ok()?;
        Some(rank as usize)
    }
}

#[cfg(test)]
#[path = "connect/tests.rs"]
mod tests;
