//! How a group comes up: settings, the device and its kernels, the board, arenas, mappings, proof.
//! Each step is voted on, so it comes up on every rank or on none.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossover_bootstrap::liveness::{self, Alive, Liveness};
use crossover_core::agreement::{Here, Local, Setup, SetupError, StepError};
use crossover_core::backend::{Backend, Ready, Session};
use crossover_core::facts::GroupFacts;
use crossover_device::device::Device;
use crossover_device::stream::Event;
use crossover_kernel_abi::{Arena, Common, MAX_WORLD, Room};

use crate::board::Board;
use crate::kernels::Kernels;
use crate::launch::Ahead;
use crate::memory::{Offer, Own, Reached};
use crate::proof;
use crate::rows::Rows;
use crate::session::{Group, IpcSession};
use crate::settings;

/// Backend `ipc`, before it is bound to a group.
pub struct Ipc;

impl Backend for Ipc {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let room = agree_on_room(setup)?;
        let cache = setup.read("read ipc.p2p_cache", settings::p2p_cache)?;
        proof::ask_platform(setup)?;
        let folder = setup.read("read ipc.kernels", |s| Ok(settings::kernels(s)))?;
        let world = setup.world();
        let device = setup.step("open its device and load its kernels", folder, open)?;
        let (asked, device) = device.map(|opened| (opened.device.clone(), opened)).unzip();
        let asked = proof::ask(setup, asked, cache)?;
        let (counted, device) = device.map(count_blocks).unzip();
        let counted =
            setup.exchange("count the blocks that its device holds", counted, |_, counted| {
                counted
            })?;
        let limits = limits(counted.get(), facts.ranks_per_unit());

        let nonces = setup.exchange("draw a nonce", Local::new(()), |_, ()| Ok(draw()))?;
        let nonce = nonces.get()[0];
        let made = setup.step("create the shared board", Local::new(()), |here, ()| make(here))?;
        let (alive, shared) = made.unzip();
        let fds = setup.exchange_fds("pass the shared board and signs of life", shared)?;
        let board =
            setup.step("map the shared board", alive.zip(fds), move |here, (alive, fds)| {
                map(here, nonce, alive, fds)
            })?;
        let seen =
            setup.step("see every rank on the shared board", board, move |here, board| {
                see(here, nonce, board)
            })?;
        let layout = Arena::new(world, room);
        let own =
            setup.step("allocate its arena", device.zip(seen), move |_, (opened, seen)| {
                let Opened { device, kernels } = opened;
                let own = Arc::new(Own::new(device, layout, seen.board)?);
                let rows = Rows::new(&own).map_err(StepError::new)?;
                Ok((Arc::clone(&own), (own, kernels, rows, seen.liveness)))
            })?;
        let (told, own) = own.unzip();
        let offers = setup.exchange("tell where its arena is", told, |_, own| own.offer())?;
        let offers = offers.into_inner();
        let session = setup.step("map its peers' arenas", own, move |here, made| {
            reach(here, &limits, made, &offers)
        })?;
        let session = proof::prove(setup, session, asked, nonce)?;
        let capacity = setup.equal("agree on capacity", Local::new(u64::MAX))?;
        Ok(Ready { session: session.map(|s| Box::new(s) as Box<dyn Session>), capacity })
    }
}

fn agree_on_room(setup: &mut Setup<'_>) -> Result<Room, SetupError> {
    let asked = setup.read("read ipc.push, ipc.lamport and ipc.stage", settings::room)?;
    let (push, rest) = asked.map(|room| (room.push, (room.lamport, room.stage))).unzip();
    let (lamport, stage) = rest.unzip();
    Ok(Room {
        push: *setup.least_bytes("ipc.push", push)?.get(),
        lamport: *setup.least_bytes("ipc.lamport", lamport)?.get(),
        stage: *setup.least_bytes("ipc.stage", stage)?.get(),
    })
}

struct Opened {
    device: Device,
    kernels: Kernels,
}

fn open(here: &Here<'_>, folder: Option<PathBuf>) -> Result<Opened, StepError> {
    let device = crossover_device::open(&here.settings().device).map_err(StepError::new)?;
    let kernels = Kernels::load(&device, folder.as_deref(), here.world())?;
    Ok(Opened { device, kernels })
}

/// How many multiprocessors a device has, and how many blocks of each kernel it holds.
type Counted = (u32, Vec<u32>);

fn count_blocks(opened: Opened) -> (Result<Counted, StepError>, Opened) {
    let multiprocessors = opened.device.description().multiprocessors;
    let resident = opened.kernels.resident_blocks().map_err(StepError::new);
    (resident.map(|resident| (multiprocessors, resident)), opened)
}

/// The most blocks of a launch of each kernel, and whether the kernel behind may come early. Where ranks share a device: such that the
/// blocks of two launches of every rank have a multiprocessor each, since it does. Those of all ranks but one leave several free then:
/// what that one has to run before it comes may fit nowhere else, since kernels that want another division of a multiprocessor's
/// memory do not run beside one another. Where not even one block of each fits twice, no kernel comes early.
fn limits(counted: &[Counted], ranks_per_unit: u32) -> (Vec<u64>, Ahead) {
    let multiprocessors = counted.iter().map(|(count, _)| *count).min().unwrap_or(1);
    let kernels = counted.iter().map(|(_, resident)| resident.len()).min().unwrap_or(0);
    let room = |nth: usize| {
        let resident = counted.iter().map(|(_, resident)| resident[nth]);
        resident.min().unwrap_or(1).min(multiprocessors)
    };
    let (launches, ahead) = match ranks_per_unit {
        0 | 1 => (1, Ahead::IfHalf),
        ranks if (0..kernels).all(|nth| room(nth) >= 2 * ranks) => (2 * ranks, Ahead::Always),
        ranks => (ranks, Ahead::Never),
    };
    let of_kernel =
        |nth| u64::from(room(nth) / launches).clamp(1, crossover_kernel_abi::MAX_BLOCKS as u64);
    ((0..kernels).map(of_kernel).collect(), ahead)
}

/// The own sign of life, and what peers get: its other end and, from rank 0, the board.
fn make(here: &Here<'_>) -> Result<(Alive, Vec<OwnedFd>), StepError> {
    let (alive, watch) = liveness::pipe()?;
    let mut shared = vec![watch];
    if here.rank() == 0 {
        shared.push(Board::create()?);
    }
    Ok((alive, shared))
}

struct Seen {
    board: Arc<Board>,
    liveness: Liveness,
}

fn map(
    here: &Here<'_>,
    nonce: u64,
    alive: Alive,
    fds: Vec<Vec<OwnedFd>>,
) -> Result<Seen, StepError> {
    let mut watches = Vec::with_capacity(fds.len());
    let mut file = None;
    for (rank, fds) in fds.into_iter().enumerate() {
        let mut fds = fds.into_iter();
        let watch = fds.next();
        watches.push(watch.ok_or_else(|| StepError(format!("rank {rank} sent no descriptor")))?);
        file = file.or(fds.next());
    }
    let file = file.ok_or_else(|| StepError::new("rank 0 sent no board"))?;
    let board = Board::map(file.as_fd())?;
    board.mark(here.rank(), mark(nonce, here.rank()));
    Ok(Seen { board, liveness: Liveness::new(alive, watches) })
}

/// After the vote every rank has left its mark.
fn see(here: &Here<'_>, nonce: u64, seen: Seen) -> Result<Seen, StepError> {
    match (0..here.world()).find(|r| seen.board.mark_of(*r) != mark(nonce, *r)) {
        None => Ok(seen),
        Some(rank) => Err(StepError(format!(
            "what rank {rank} wrote there does not arrive: do all ranks run on one node?"
        ))),
    }
}

fn reach(
    here: &Here<'_>,
    (blocks, ahead): &(Vec<u64>, Ahead),
    (own, mut kernels, rows, liveness): (Arc<Own>, Kernels, Rows, Liveness),
    offers: &[Offer],
) -> Result<IpcSession, StepError> {
    let (rank, world) = (here.rank(), here.world());
    let mut arenas = [0; MAX_WORLD];
    let mut peers = Vec::with_capacity(offers.len());
    for (peer, offer) in (0..).zip(offers) {
        if peer == rank {
            arenas[peer as usize] = own.arena();
            peers.push(None);
            continue;
        }
        let reached: Reached = own
            .reach(offer)
            .map_err(|e| StepError(format!("the memory of rank {peer} cannot be mapped: {e}")))?;
        arenas[peer as usize] = reached.address();
        peers.push(Some(reached));
    }
    let deadline = here.settings().call_deadline;
    let common = Common {
        arenas,
        states: own.states(),
        abort: own.abort(),
        failure: own.failure(rank),
        budget: nanoseconds(deadline),
        rank,
        world,
        blocks: blocks.iter().copied().max().unwrap_or(1) as u32,
        ..Common::ZERO
    };
    let rows = Arc::new(Mutex::new(rows));
    kernels.limit(blocks);
    let kernels = Arc::new(kernels);
    let order = Event::new(&own.device).map_err(StepError::new)?;
    let group = Group { rank, world, ahead: *ahead, common, kernels, own, rows };
    let (last, history, parted, process) = (None, 0, false, std::process::id());
    Ok(IpcSession { group, peers, liveness, deadline, last, order, history, parted, process })
}

fn mark(nonce: u64, rank: u32) -> u64 {
    nonce ^ (u64::from(rank) + 1)
}

/// Random without a source of randomness: `RandomState` is seeded by the operating system.
fn draw() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

fn nanoseconds(deadline: Duration) -> u64 {
    u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::limits;
    use crate::launch::Ahead;

    #[test]
    fn two_launches_of_all_ranks_fit_and_leave_room_for_a_late_one() {
        for ranks in 1..=16 {
            for (multiprocessors, resident) in
                [(8, 8), (14, 28), (16, 16), (26, 100), (130, 132), (130, 264), (130, 1000)]
            {
                let (most, more) = (resident, resident + 1);
                let counted =
                    [(multiprocessors + 2, vec![most, 140]), (multiprocessors, vec![more, 140])];
                let (all, ahead) = limits(&counted, ranks);
                assert_eq!(all.len(), 2);
                let room = u64::from(resident.min(multiprocessors));
                let (blocks, ranks) = (all[0], u64::from(ranks));
                let told =
                    format!("{ranks} ranks, {multiprocessors} {resident}: {all:?} {ahead:?}");
                match ahead {
                    Ahead::IfHalf => assert!(ranks == 1 && blocks == room, "{told}"),
                    Ahead::Always => {
                        assert!((1..=room / (2 * ranks)).contains(&blocks), "{told}");
                        assert!(blocks * 2 * (ranks - 1) < room, "{told}");
                    }
                    Ahead::Never => {
                        assert!(room < 2 * ranks && blocks == (room / ranks).max(1), "{told}");
                    }
                }
            }
        }
        assert_eq!(limits(&[(132, vec![132, 264])], 1), (vec![132, 132], Ahead::IfHalf));
    }
}
