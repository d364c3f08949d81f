//! How a group comes up: settings, the segment's file, descriptors, mappings, proof. Each step is
//! voted on, so it comes up on every rank or on none.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use crossover_core::agreement::{Agreed, Here, Local, Setup, SetupError, StepError};
use crossover_core::backend::{Backend, Ready, Session};
use crossover_core::facts::GroupFacts;

use crate::distance::{self, Distance};
use crate::layout::Layout;
use crate::protocol::Steps;
use crate::ring::Ring;
use crate::segment::{Segment, Token, create};
use crate::session::HostSession;
use crate::settings;
use crate::team::Team;
use crate::wait::{Habits, register};
use crossover_bootstrap::liveness::{self, Alive, Liveness};

/// Backend `host`, before it is bound to a group.
pub struct Host;

impl Backend for Host {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        _facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let (session, capacity) = open(setup)?;
        Ok(Ready { session: session.map(|s| Box::new(s) as Box<dyn Session>), capacity })
    }
}

/// The session, and the most input bytes of a call: any, since payloads travel in chunks.
pub(crate) fn open<'g>(
    setup: &mut Setup<'g>,
) -> Result<(Local<HostSession>, Agreed<'g, u64>), SetupError> {
    let world = setup.world();
    let asked = setup.read("read host.chunk", settings::chunk)?;
    let chunk = setup.least_bytes("host.chunk", asked)?;
    let ring = setup.read("read host.ring", settings::ring)?;
    let ring = ring.map(move |ring| ring.bytes(world));
    let ring = setup.least_bytes("host.ring", ring)?;
    let distance = setup.read("read host.distance", settings::are_far)?;
    let distance = setup.same("host.distance", distance)?;
    let threads = setup.read("read host.threads", settings::threads)?;
    let nonces = setup.exchange("draw a nonce", nothing(), |_, ()| Ok(draw_nonce()))?;
    let processors = setup.exchange("tell its processors", nothing(), |_, ()| Ok(processors()))?;

    let fenced = setup.all("register for memory barriers", Local::new(register()))?;

    let (chunk_bytes, ring_bytes) = (*chunk.get() as usize, *ring.get() as usize);
    let layout = Layout { world, chunk: chunk_bytes, ring: ring_bytes };
    let token = Token { nonce: nonces.get()[0], layout };
    let made =
        setup.step("create the shared segment", nothing(), move |here, ()| make(here, token))?;
    let (alive, shared) = made.unzip();
    let fds = setup.exchange_fds("pass the shared segment and signs of life", shared)?;
    let mapped =
        setup.step("map the shared segment", alive.zip(fds), move |here, (alive, fds)| {
            map(here, token, alive, fds)
        })?;
    let proven =
        setup.step("see every rank in the shared segment", mapped, move |here, mapped| {
            prove(here, token, mapped)
        })?;
    let (mapped, proven) = proven.map(|proven| (Arc::clone(&proven.0), proven)).unzip();
    let asked = (*distance.get(), count_processors(processors.get()) >= world as usize);
    let is_timed = asked == (None, true);
    let far = setup.exchange("time a line's way to its peers", mapped, move |here, segment| {
        Ok(match asked {
            (Some(far), _) => Some(far),
            (None, true) => distance::are_far(&segment, here.rank(), distance::FORMING),
            // Who has no processor does not answer, or late.
            (None, false) => None,
        })
    })?;

    let everyone = processors.get().clone();
    let team = setup.step("start its threads", threads, move |here, threads| {
        Team::new(threads, own_processors(&everyone, here.rank()).as_deref())
            .map_err(|e| StepError(format!("no more than {threads} threads, host.threads: {e}")))
    })?;

    let (processors, fenced) = (count_processors(processors.get()), *fenced.get());
    let far = far.get()[0]; // rank 0 has timed them
    let session = proven.zip(team).zip(setup.rank()).map(move |((proven, team), rank)| {
        let (segment, liveness, deadline) = proven;
        if rank == 0 {
            let (bytes, chunk, ring) = (layout.bytes(), layout.chunk, layout.ring);
            tracing::debug!(
                target: "crossover::host",
                bytes,
                chunk,
                ring,
                processors,
                fenced,
                "segment ready"
            );
            let distance = far.map_or("not known", |far| if far { "far" } else { "near" });
            tracing::info!(target: "crossover::form", distance, "how far ranks are from one another");
        }
        HostSession {
            segment,
            liveness,
            steps: Steps::new(rank, layout.world),
            ring: Ring::new(layout.ring),
            distance: Distance::new(far, is_timed),
            habits: Habits::new(rank, layout.world, processors, fenced, deadline),
            team,
        }
    });
    let capacity = chunk.map(|_| u64::MAX);
    Ok((session, capacity))
}

fn nothing() -> Local<()> {
    Local::new(())
}

/// Random without a source of randomness: `RandomState` is seeded by the operating system.
fn draw_nonce() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The own sign of life, and what peers get: its other end and, from rank 0, the segment.
fn make(here: &Here<'_>, token: Token) -> Result<(Alive, Vec<OwnedFd>), StepError> {
    let (alive, watch) = liveness::pipe()?;
    let mut shared = vec![watch];
    if here.rank() == 0 {
        shared.push(create(&settings::place(here.settings()), token)?);
    }
    Ok((alive, shared))
}

fn map(
    here: &Here<'_>,
    token: Token,
    alive: Alive,
    fds: Vec<Vec<OwnedFd>>,
) -> Result<(Segment, Liveness), StepError> {
    let mut watches = Vec::with_capacity(fds.len());
    let mut file = None;
    for (rank, fds) in fds.into_iter().enumerate() {
        let mut fds = fds.into_iter();
        let watch = fds.next();
        watches.push(watch.ok_or_else(|| StepError(format!("rank {rank} sent no descriptor")))?);
        file = file.or(fds.next());
    }
    let file = file.ok_or_else(|| StepError::new("rank 0 sent no segment"))?;
    let segment = Segment::map(file.as_fd(), token.layout, token)?;
    segment.mark(here.rank()).store(mark(token, here.rank()), Release);
    Ok((segment, Liveness::new(alive, watches)))
}

/// After the vote every rank has left its mark. A rank that maps a copy does not see the others'.
fn prove(
    here: &Here<'_>,
    token: Token,
    (segment, liveness): (Segment, Liveness),
) -> Result<(Arc<Segment>, Liveness, std::time::Duration), StepError> {
    match (0..here.world()).find(|r| segment.mark(*r).load(Acquire) != mark(token, *r)) {
        None => Ok((Arc::new(segment), liveness, here.settings().call_deadline)),
        Some(rank) => Err(StepError(format!(
            "what rank {rank} wrote there does not arrive: do all ranks run on one node?"
        ))),
    }
}

fn mark(token: Token, rank: u32) -> u64 {
    token.nonce ^ (u64::from(rank) + 1)
}

/// The processors that this rank may run on, and how many of them it may keep busy.
fn processors() -> (Vec<u32>, u32) {
    let mask = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    let allowed = |cpu: &u32| mask.is_set(*cpu as usize);
    let busy = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    ((0..rustix::thread::CpuSet::MAX_CPU as u32).filter(allowed).collect(), busy)
}

/// The processors that this rank may run on and no other; `None` if it shares all of them.
fn own_processors(ranks: &[(Vec<u32>, u32)], rank: u32) -> Option<Vec<u32>> {
    let (own, _) = &ranks[rank as usize];
    let others = (0..).zip(ranks).filter(|(other, _)| *other != rank);
    let theirs: BTreeSet<u32> = others.flat_map(|(_, (cpus, _))| cpus).copied().collect();
    let alone: Vec<u32> = own.iter().copied().filter(|cpu| !theirs.contains(cpu)).collect();
    (!alone.is_empty()).then_some(alone)
}

/// Processors that the ranks have together: ranks may be pinned to one each, and a container's
/// quota may be less than its processors.
fn count_processors(ranks: &[(Vec<u32>, u32)]) -> usize {
    let union: BTreeSet<u32> = ranks.iter().flat_map(|(cpus, _)| cpus).copied().collect();
    let quota = ranks.iter().filter(|(cpus, busy)| (*busy as usize) < cpus.len());
    quota.map(|(_, busy)| *busy as usize).min().unwrap_or(usize::MAX).min(union.len())
}
