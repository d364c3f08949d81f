//! What goes between ranks 0 and 1, while the others wait.

use std::mem::offset_of;
use std::time::Duration;

use crossover_core::communicator::Communicator;
use crossover_device::driver::IpcHandle;
use crossover_device::error::DeviceError;
use crossover_device::module::Shape;
use crossover_device::sharing::{Mapping, Share};
use crossover_kernel_abi::{Common, Failure as GivenUp, State, TripArgs, code};

use super::{Ground, HEAD, Stage, device, middle, on_all, rate, time};
use crate::failure::Failure;
use crate::perf::beside::Beside;
use crate::perf::floors::Pair;

/// Where in the head of a rank's own memory what it is.
const STATE: usize = 0;
const ABORT: usize = 256;
const GIVEN_UP: usize = 512;
const TOOK: usize = 1024;
/// How long a word may be on its way.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rounds of the first kernel, of which one tells how many more are affordable.
const FIRST_ROUNDS: u64 = 16;
const MOST_ROUNDS: u64 = 2000;
/// How long a kernel of rounds takes, in nanoseconds, where that many are allowed.
const TIME: u64 = 2_000_000;
/// Odd, and few enough for a device that is slow.
const SAMPLES: usize = 3;
/// Of what ranks tell each other.
const OFFER_WORDS: usize = 10;

/// The other rank's memory, as this one reaches it.
enum Reached {
    /// In this process.
    Here(u64),
    Mapped(Mapping),
}

/// One of the two ranks.
struct Side<'s> {
    stage: &'s Stage,
    ground: &'s Ground,
    rank: u32,
    peer: Reached,
}

/// Measures on ranks 0 and 1; the others keep them company. `None` if one does not reach the other's memory.
/// `node` are an empty kernel's microseconds, on rank 0.
pub(super) fn measure(
    stage: &Stage,
    ground: &Ground,
    group: &Communicator,
    beside: &Beside<'_>,
    one_process: bool,
    node: f64,
) -> Result<Option<Pair>, Failure> {
    let rank = group.rank();
    let reports = group.facts().reports();
    if reports[0].node != reports[1].node {
        return Ok(None);
    }
    let offer = on_all(group, beside, offer(ground, one_process))?;
    let Some(mut offers) = offer.map(|offer| by_rank(rank, offer)) else { return Ok(None) };
    beside.max(&mut offers)?;
    let side = match rank {
        0 | 1 => {
            let theirs = &offers[(1 - rank as usize) * OFFER_WORDS..][..OFFER_WORDS];
            let unit = &reports[1 - rank as usize].unit;
            reach(stage, ground, theirs, unit, one_process)
                .map(|peer| Some(Side { stage, ground, rank, peer }))
        }
        _ => Ok(None),
    };
    let Some(side) = on_all(group, beside, side)? else { return Ok(None) };
    let pair = of_sides(side.as_ref(), group, beside, node)?;
    // What is mapped is let go of before its owner gives it back.
    drop(side);
    beside.barrier()?;
    Ok(pair)
}

fn of_sides(
    side: Option<&Side<'_>>,
    group: &Communicator,
    beside: &Beside<'_>,
    node: f64,
) -> Result<Option<Pair>, Failure> {
    let Some(trip_us) = trips(side, group, beside)? else { return Ok(None) };
    let sender = side.filter(|side| side.rank == 0);
    let Some(one_way) = link(sender, group, beside, node)? else { return Ok(None) };
    let Some(both_ways) = link(side, group, beside, node)? else { return Ok(None) };
    Ok(Some(Pair { trip_us, one_way, both_ways }))
}

/// What the other rank needs to reach this one's area: its address, its bytes and its handle.
fn offer(ground: &Ground, one_process: bool) -> Result<[u64; OFFER_WORDS], DeviceError> {
    let mut offer = [0; OFFER_WORDS];
    offer[0] = ground.area.address();
    offer[1] = ground.area.bytes() as u64;
    if !one_process {
        let Share::Handle(handle) = ground.area.share()? else {
            return Err(DeviceError::Invalid("memory is shared by descriptor alone".to_owned()));
        };
        for (word, bytes) in offer[2..].iter_mut().zip(handle.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
    }
    Ok(offer)
}

/// The offers of ranks 0 and 1, where a rank knows its own: the greatest of all ranks' words are
/// everybody's.
fn by_rank(rank: u32, offer: [u64; OFFER_WORDS]) -> Vec<u64> {
    let mut offers = vec![0; 2 * OFFER_WORDS];
    if rank < 2 {
        offers[rank as usize * OFFER_WORDS..][..OFFER_WORDS].copy_from_slice(&offer);
    }
    offers
}

fn reach(
    stage: &Stage,
    ground: &Ground,
    offer: &[u64],
    unit: &str,
    one_process: bool,
) -> Result<Reached, DeviceError> {
    let device = device(stage);
    debug_assert_eq!(ground.area.bytes() % super::UNIT, 0, "a handle maps whole units");
    if one_process {
        if device.description().uuid != unit {
            let peer = device.driver().devices()?.into_iter().find(|one| one.uuid == unit);
            let peer = peer.ok_or_else(|| {
                DeviceError::Invalid(format!("device {unit} is not visible here"))
            })?;
            device.make_current()?;
            device.driver().enable_peer(peer.ordinal)?;
        }
        return Ok(Reached::Here(offer[0]));
    }
    let mut handle: IpcHandle = [0; 64];
    for (bytes, word) in handle.as_chunks_mut::<8>().0.iter_mut().zip(&offer[2..]) {
        *bytes = word.to_ne_bytes();
    }
    Mapping::by_handle(device, &handle, offer[1] as usize).map(Reached::Mapped)
}

/// Microseconds of a word from one rank to the other. `None` if a rank gave up. Collective.
fn trips(
    side: Option<&Side<'_>>,
    group: &Communicator,
    beside: &Beside<'_>,
) -> Result<Option<f64>, Failure> {
    let mut first = 1;
    let mut kernel = |rounds: u64| -> Result<Option<f64>, Failure> {
        beside.barrier()?;
        let took = side.map_or(Ok(0), |side| side.go(first, rounds));
        first += rounds;
        let Some(took) = on_all(group, beside, took)? else { return Ok(None) };
        // The first round is not counted; both have the same number after this.
        let mut each = [took / (2 * (rounds - 1))];
        beside.max(&mut each)?;
        Ok(Some(each[0] as f64))
    };
    let Some(each) = kernel(FIRST_ROUNDS)? else { return Ok(None) };
    let rounds = (TIME / (2 * each as u64).max(1)).clamp(FIRST_ROUNDS, MOST_ROUNDS);
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        match kernel(rounds)? {
            Some(each) => samples.push(each),
            None => return Ok(None),
        }
    }
    Ok(Some(middle(samples) / 1e3))
}

/// 10^9 bytes a second from each rank that sends to the other; 0 but on rank 0. `None` if a device
/// failed. Collective.
fn link(
    side: Option<&Side<'_>>,
    group: &Communicator,
    beside: &Beside<'_>,
    node: f64,
) -> Result<Option<f64>, Failure> {
    let graph = on_all(group, beside, side.map(Side::record).transpose())?;
    let Some(graph) = graph else { return Ok(None) };
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        beside.barrier()?;
        let took = match (side, &graph) {
            (Some(side), Some(graph)) => time(side.stage, graph),
            _ => Ok(0.0),
        };
        let Some(took) = on_all(group, beside, took)? else { return Ok(None) };
        let mut slowest = [took as u64];
        beside.max(&mut slowest)?;
        samples.push(slowest[0] as f64);
    }
    let rate = |side: &Side<'_>| rate(side.ground.bytes, middle(samples), node * 1e3);
    Ok(Some(side.map_or(0.0, rate)))
}

impl Side<'_> {
    fn peer(&self) -> u64 {
        match &self.peer {
            Reached::Here(address) => *address,
            Reached::Mapped(mapping) => mapping.address(),
        }
    }

    /// Sends the word and receives it so many times; nanoseconds of all but the first.
    fn go(&self, first: u64, rounds: u64) -> Result<u64, DeviceError> {
        let Side { stage, ground, rank, .. } = self;
        let own = |at: usize| ground.own.address() + at as u64;
        let mut arenas = Common::ZERO.arenas;
        arenas[*rank as usize] = ground.area.address();
        arenas[1 - *rank as usize] = self.peer();
        let common = Common {
            arenas,
            states: own(STATE),
            abort: own(ABORT),
            failure: own(GIVEN_UP),
            budget: PATIENCE.as_nanos() as u64,
            rank: *rank,
            world: 2,
            blocks: 1,
            ..Common::ZERO
        };
        let args = TripArgs { common, rounds, first, took: own(TOOK) };
        let shape = Shape { blocks: 1, threads: 32, programmatic: false };
        // SAFETY: what it points at is in buffers and a mapping that live until it is waited for.
        unsafe { ground.trip.launch(shape, args.as_bytes(), stage.stream.raw()) }?;
        let mut head = [0; HEAD];
        stage.stream.synchronize()?;
        ground.own.download(0, &mut head, &stage.stream)?;
        let at = GIVEN_UP + offset_of!(GivenUp, code);
        let why = u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if why != code::NONE {
            return Err(DeviceError::Invalid(format!(
                "a word of rank {} did not come to rank {rank} within {PATIENCE:?}",
                1 - rank
            )));
        }
        let took: [u8; 8] = std::array::from_fn(|byte| head[TOOK + byte]);
        Ok(u64::from_ne_bytes(took))
    }

    fn record(&self) -> Result<crossover_device::graph::Graph, DeviceError> {
        let Side { stage, ground, .. } = self;
        ground.record_copies(stage, self.peer() + HEAD as u64, ground.bytes, 1)
    }
}

const _: () = assert!(STATE + size_of::<State>() <= ABORT && TOOK + 8 <= HEAD);
const _: () = assert!(ABORT + 4 <= GIVEN_UP && GIVEN_UP + size_of::<GivenUp>() <= TOOK);
