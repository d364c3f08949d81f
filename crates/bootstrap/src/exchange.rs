//! The two ends of the star: rank 0 gathers and hands out, the others give and take.
//!
//! Whoever finds a failure tells rank 0, and rank 0 tells everyone, so that all ranks return the
//! same sentence. A rank whose deadline has passed asks rank 0 who is missing ([`Message::Late`])
//! instead of blaming rank 0, which is all it can see itself. Only where no answer comes does it do that.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::conn::{Conn, wait};
use crate::error::Failure;
use crate::frame::{self, FrameError, MAX_DESCRIPTORS, MAX_PAYLOAD, Message};

/// How long a rank that found a failure tries to tell the others.
const TELL: Duration = Duration::from_millis(200);

/// Why a rank leaves an exchange of a group that has ended.
pub(crate) fn over(why: &str) -> String {
    format!("its group has ended: {why}")
}

/// How often a rank that waits asks whether that is over.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// What one rank gives.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    pub(crate) body: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// One exchange, as this rank sees it.
pub(crate) struct Call<'a> {
    pub(crate) seq: u64,
    pub(crate) step: &'a str,
    pub(crate) deadline: Duration,
    pub(crate) until: Instant,
    /// Is there nothing to exchange any more?
    pub(crate) ended: &'a dyn Fn() -> Option<String>,
}

/// This rank's connections.
pub(crate) enum Link {
    /// Rank 0: the connection of rank r is at r - 1.
    Hub(Vec<Conn>),
    /// Another rank, and its connection to rank 0.
    Spoke(u32, Conn),
}

/// How long after its deadline a rank waits for rank 0 to say who is missing: a deadline is what was set,
/// and no peer is given up before.
pub(crate) fn grace(deadline: Duration) -> Duration {
    (deadline / 4).min(Duration::from_secs(2))
}

impl Link {
    /// Gives `mine` and takes everyone's, in rank order.
    pub(crate) fn exchange(
        &mut self,
        call: &Call<'_>,
        mine: Parcel,
    ) -> Result<Vec<Parcel>, Failure> {
        let outcome = match self {
            Link::Hub(peers) => {
                gather(peers, call, mine).and_then(|all| hand_out(peers, call, all))
            }
            Link::Spoke(rank, hub) => give_and_take(hub, *rank, call, mine),
        };
        outcome.inspect_err(|failure| self.tell(failure))
    }

    /// This node's addresses at which the others are connected to it.
    pub(crate) fn reached(&self) -> Vec<IpAddr> {
        let mut all: Vec<IpAddr> = self.conns().iter().filter_map(Conn::own_address).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The folder of the Unix socket at which they met, if it was one.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.conns().iter().find_map(Conn::folder)
    }

    fn conns(&self) -> &[Conn] {
        match self {
            Link::Hub(peers) => peers,
            Link::Spoke(_, hub) => std::slice::from_ref(hub),
        }
    }

    /// Tells the others that the channel has failed.
    pub(crate) fn tell(&mut self, failure: &Failure) {
        let until = Instant::now() + TELL;
        let peers = match self {
            Link::Hub(peers) => peers.as_mut_slice(),
            Link::Spoke(_, hub) => std::slice::from_mut(hub),
        };
        let failed = Message::Failed(failure.clone());
        peers.iter_mut().for_each(|peer| peer.say(&failed));
        flush(peers, until);
    }
}

fn gather(peers: &mut [Conn], call: &Call<'_>, mine: Parcel) -> Result<Vec<Parcel>, Failure> {
    let mut parcels: Vec<Option<Parcel>> = peers.iter().map(|_| None).collect();
    let mut looks = Looks::new(call, 0);
    loop {
        let mut late = None;
        for (peer, (conn, slot)) in peers.iter_mut().zip(&mut parcels).enumerate() {
            let rank = peer as u32 + 1;
            conn.advance();
            while let Some(message) = conn.next(MAX_PAYLOAD).map_err(|e| call.garbled(rank, e))? {
                match message {
                    Message::Failed(failure) => return Err(failure),
                    Message::Late { seq, waited } if seq == call.seq => {
                        late = late.max(Some(waited));
                    }
                    // Answered by the exchange that it asked about.
                    Message::Late { .. } => {}
                    Message::Part { seq, step, descriptors, body } if slot.is_none() => {
                        call.same(rank, seq, &step)?;
                        let descriptors = conn.take_descriptors(descriptors as usize);
                        let descriptors = descriptors.map_err(|e| call.garbled(rank, e))?;
                        *slot = Some(Parcel { body, descriptors });
                    }
                    _ => return Err(call.garbled(rank, out_of_turn())),
                }
            }
            if let Some(how) = conn.closed() {
                return Err(call.lost(rank, how));
            }
        }
        let awaited: Vec<u32> = absent(&parcels);
        if awaited.is_empty() {
            return Ok(std::iter::once(mine).chain(parcels.into_iter().flatten()).collect());
        }
        let late = late.or_else(|| (Instant::now() >= call.until).then_some(call.deadline));
        if let Some(waited) = late {
            return Err(call.missing(awaited, waited));
        }
        let look = looks.look()?;
        let mut sockets: Vec<_> = peers.iter().map(Conn::interest).collect();
        wait(&mut sockets, call.until.min(look));
    }
}

fn hand_out(peers: &mut [Conn], call: &Call<'_>, all: Vec<Parcel>) -> Result<Vec<Parcel>, Failure> {
    let counts: Vec<u32> = all.iter().map(|parcel| parcel.descriptors.len() as u32).collect();
    let (bodies, descriptors): (Vec<_>, Vec<_>) =
        all.into_iter().map(|parcel| (parcel.body, parcel.descriptors)).unzip();
    let descriptors: Vec<OwnedFd> = descriptors.into_iter().flatten().collect();
    if descriptors.len() > MAX_DESCRIPTORS {
        let why = format!(
            "{} at once, where {MAX_DESCRIPTORS} are the most that may be passed",
            descriptors.len()
        );
        return Err(Failure::NoDescriptors { step: call.step.to_owned(), why });
    }
    let message = Message::All { seq: call.seq, descriptors: counts.clone(), bodies };
    let frame = frame::encode(&message).map_err(|e| call.garbled(0, e))?;
    let (frame, descriptors) = (Arc::new(frame), Arc::new(descriptors));
    for peer in peers.iter_mut() {
        peer.queue(Arc::clone(&frame), Arc::clone(&descriptors));
    }
    // Who came at the last moment is given its answer all the same.
    let patience = grace(call.deadline);
    flush(peers, call.until + patience);
    // A peer that has closed by now has either taken all, or is found lost by the next exchange.
    if let Some(peer) = peers.iter().position(|peer| !peer.is_flushed()) {
        return Err(call.missing(vec![peer as u32 + 1], call.deadline + patience));
    }
    let Message::All { bodies, .. } = message else { unreachable!("made above") };
    let descriptors = Arc::into_inner(descriptors).expect("every peer's queue is empty");
    Ok(parcels(bodies, &counts, descriptors))
}

fn give_and_take(
    hub: &mut Conn,
    rank: u32,
    call: &Call<'_>,
    mine: Parcel,
) -> Result<Vec<Parcel>, Failure> {
    let part = Message::Part {
        seq: call.seq,
        step: call.step.to_owned(),
        descriptors: mine.descriptors.len() as u32,
        body: mine.body,
    };
    let frame = frame::encode(&part).map_err(|e| call.garbled(rank, e))?;
    hub.queue(Arc::new(frame), Arc::new(mine.descriptors));
    let patience = grace(call.deadline);
    let (mut asked, mut looks) = (false, Looks::new(call, rank));
    loop {
        hub.advance();
        if let Some(message) = hub.next(MAX_PAYLOAD).map_err(|e| call.garbled(0, e))? {
            return match message {
                Message::Failed(failure) => Err(failure),
                Message::All { seq, descriptors, bodies } if seq == call.seq => {
                    let came = hub.take_descriptors(descriptors.iter().sum::<u32>() as usize);
                    let came = came.map_err(|e| call.garbled(0, e))?;
                    Ok(parcels(bodies, &descriptors, came))
                }
                _ => Err(call.garbled(0, out_of_turn())),
            };
        }
        if let Some(how) = hub.closed() {
            return Err(call.lost(0, how));
        }
        let now = Instant::now();
        if now >= call.until + patience {
            return Err(call.missing(vec![0], call.deadline + patience));
        }
        if now >= call.until && !asked {
            hub.say(&Message::Late { seq: call.seq, waited: call.deadline });
            asked = true;
            continue;
        }
        let look = looks.look()?;
        let next = if asked { call.until + patience } else { call.until };
        wait(&mut [hub.interest()], next.min(look));
    }
}

/// Sends what is queued, until `until` at most.
pub(crate) fn flush(peers: &mut [Conn], until: Instant) {
    loop {
        peers.iter_mut().for_each(Conn::advance);
        let mut sockets: Vec<_> =
            peers.iter().filter(|peer| !peer.is_flushed()).map(Conn::interest).collect();
        if sockets.is_empty() || Instant::now() >= until {
            return;
        }
        wait(&mut sockets, until);
    }
}

/// When a rank asks whether its wait is over.
struct Looks<'a> {
    call: &'a Call<'a>,
    rank: u32,
    next: Instant,
}

impl<'a> Looks<'a> {
    fn new(call: &'a Call<'a>, rank: u32) -> Looks<'a> {
        Looks { call, rank, next: Instant::now() + LOOK }
    }

    /// Asks, if it is time. Returns when it will be the next time.
    fn look(&mut self) -> Result<Instant, Failure> {
        let now = Instant::now();
        if now >= self.next {
            if let Some(why) = (self.call.ended)() {
                return Err(self.call.lost(self.rank, &over(&why)));
            }
            self.next = now + LOOK;
        }
        Ok(self.next)
    }
}

impl Call<'_> {
    fn same(&self, rank: u32, seq: u64, step: &str) -> Result<(), Failure> {
        if seq == self.seq && step == self.step {
            return Ok(());
        }
        let (mine, theirs) = if step == self.step {
            // One name, two calls: the numbers tell them apart.
            (format!("{step} (call {})", self.seq), format!("{step} (call {seq})"))
        } else {
            (self.step.to_owned(), step.to_owned())
        };
        Err(Failure::DifferentSteps { me: 0, mine, rank, theirs })
    }

    fn missing(&self, ranks: Vec<u32>, waited: Duration) -> Failure {
        Failure::Missing { ranks, step: self.step.to_owned(), waited }
    }

    fn lost(&self, rank: u32, how: &str) -> Failure {
        Failure::Lost { rank, step: self.step.to_owned(), how: how.to_owned() }
    }

    fn garbled(&self, rank: u32, e: FrameError) -> Failure {
        let what = format!("what cannot be used: {e}");
        Failure::Garbled { rank, step: self.step.to_owned(), what }
    }
}

fn absent(parcels: &[Option<Parcel>]) -> Vec<u32> {
    (1..).zip(parcels).filter(|(_, parcel)| parcel.is_none()).map(|(rank, _)| rank).collect()
}

fn parcels(bodies: Vec<Vec<u8>>, counts: &[u32], descriptors: Vec<OwnedFd>) -> Vec<Parcel> {
    let mut descriptors = descriptors.into_iter();
    let with_own = |(body, count): (Vec<u8>, &u32)| Parcel {
        body,
        descriptors: descriptors.by_ref().take(*count as usize).collect(),
    };
    bodies.into_iter().zip(counts).map(with_own).collect()
}

fn out_of_turn() -> FrameError {
    FrameError::Malformed("it is not this message's turn".to_owned())
}
