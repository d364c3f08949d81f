//! How a group comes up: settings, the library and its version, the communicator, windows, and the
//! first calls. Each step is voted on, so it comes up on every rank or on none, and whatever may
//! hang inside the library is awaited to a deadline.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossover_bootstrap::liveness::{self, Alive, Liveness};
use crossover_core::agreement::{Agreed, Here, Local, Setup, SetupError, StepError};
use crossover_core::backend::{Backend, Ready, Session};
use crossover_core::facts::GroupFacts;
use crossover_device::device::Device;
use crossover_device::driver;
use crossover_device::stream::{Event, Stream};
use crossover_nccl_sys::layout::{Config, UniqueId};
use crossover_nccl_sys::{Library, Vendor, advisories};

use crate::aside::{Fared, blamed, within};
use crate::board::Board;
use crate::calls::Maker;
use crate::comm::{Comm, Failed, Ticket, words};
use crate::eligibility::{DESCRIPTOR, PINNED, SYMMETRIC};
use crate::ends::Ends;
use crate::parting;
use crate::pins::Pins;
use crate::session::NcclSession;
use crate::trial::Unproven;
use crate::watch::{self, Bell, Last, Shared};
use crate::window::{self, Outcome, Windows};
use crate::{settings, sharing, trial};

/// Backend `nccl`, before it is bound to a group.
pub struct Nccl;

impl Backend for Nccl {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let asked = setup.read("read nccl.window", settings::window)?;
        let room = setup.least_bytes("nccl.window", asked)?;
        let file = setup.read("read nccl.library", |s| Ok(settings::library(s)))?;
        let opened = setup.step("open its device and load the library", file, open)?;
        let opened = of_one_version(setup, opened)?;
        let units = facts.shared_units();
        let opened = setup.step("share its device", opened, move |_, opened| {
            let Library { vendor, version, .. } = *opened.library;
            // The library reads the same variables from the same place, in a moment.
            let variable = |name: &str| std::env::var(name).ok();
            sharing::allow(&units, vendor, version, variable).map(|()| opened)
        })?;
        let opened = withhold_pins(setup, opened)?;
        let told = setup.read("read nccl.ranks_per_device", settings::ranks_per_device)?;
        let told = setup.same("nccl.ranks_per_device", told)?;
        let config = sharing::config(facts.ranks_per_unit().max(*told.get()));
        let most = config.max_ctas;
        let joined = join(setup, opened, config)?;
        let (windows, joined) = open_windows(setup, facts, joined, room, config)?;
        let proven = prove(setup, joined, windows)?;
        let node = meet_on_node(setup, facts)?;
        let session = setup.step("watch its calls", proven.zip(node), move |here, made| {
            begin(here, made, Pins::new(most))
        })?;
        let capacity = setup.equal("agree on capacity", Local::new(u64::MAX))?;
        Ok(Ready { session: session.map(|s| Box::new(s) as Box<dyn Session>), capacity })
    }
}

struct Opened {
    device: Device,
    library: Arc<Library>,
}

fn open(here: &Here<'_>, file: Option<PathBuf>) -> Result<Opened, StepError> {
    let device = crossover_device::open(&here.settings().device).map_err(StepError::new)?;
    let vendor = match device.driver().vendor() {
        driver::Vendor::Hip => Vendor::Rccl,
        driver::Vendor::Cuda | driver::Vendor::Emulated => Vendor::Nccl,
    };
    device.make_current().map_err(StepError::new)?;
    // What the loader runs may wait, and so may a plug-in.
    let library = within(deadline(here), "loading the library", move || {
        let loaded = Library::load(file.as_deref(), vendor);
        let help = "nccl.library is the setting that names its file";
        Ok(loaded.map_err(|e| StepError(format!("{e}: {help}")))?)
    })?;
    parting::prepare(&parting::LOADED).map_err(StepError::new)?;
    if here.rank() == 0 {
        let (version, path) = (library.version, library.path.display());
        tracing::debug!(target: "crossover::nccl", %vendor, %version, %path, "library loaded");
        for advisory in advisories(vendor, version) {
            let (note, source, fixed) = (advisory.note, advisory.source, advisory.until);
            tracing::warn!(
                target: "crossover::nccl",
                "{vendor} {version}: {note} ({source}); {fixed} does not"
            );
        }
    }
    Ok(Opened { device, library: Arc::new(library) })
}

/// Of a step. A rank that failed at once has voted, and waits for those that wait here.
fn deadline(here: &Here<'_>) -> Duration {
    here.settings().call_deadline.min(here.patience() / 2)
}

/// Ranks with different versions would find out by hanging.
fn of_one_version(
    setup: &mut Setup<'_>,
    opened: Local<Opened>,
) -> Result<Local<Opened>, SetupError> {
    let (told, opened) = opened
        .map(|opened| {
            let path = opened.library.path.display().to_string();
            ((sharing::named(&opened.library), path), opened)
        })
        .unzip();
    let all = setup.exchange("tell which library it has", told, |_, told| Ok(told))?;
    let odd = odd_one_out(all.get());
    setup.step("use one version with the others", opened, move |here, opened| match odd {
        Some((rank, why)) if rank == here.rank() => Err(StepError(why)),
        _ => Ok(opened),
    })
}

/// The first rank whose version is not that of most ranks, and what it has; of two that are equally
/// common, rank 0's is taken for right.
fn odd_one_out(all: &[(String, String)]) -> Option<(u32, String)> {
    let votes = |version: &String| all.iter().filter(|(other, _)| other == version).count();
    // The last of equal maxima is taken: from the back, that is the lowest rank's.
    let (usual, _) = all.iter().rev().max_by_key(|(version, _)| votes(version))?;
    let (rank, (version, path)) = (0..).zip(all).find(|(_, (version, _))| version != usual)?;
    let alone = votes(usual) + 1 == all.len();
    let others = if alone { "the others" } else { "most others" };
    Some((rank, format!("rank {rank} has {version} ({path}), {others} {usual}")))
}

/// Without a configuration of each call nothing can be pinned: the environment is the user's.
fn withhold_pins(
    setup: &mut Setup<'_>,
    opened: Local<Opened>,
) -> Result<Local<Opened>, SetupError> {
    let (lacks, opened) = opened
        .map(|opened| {
            let has = &opened.library.optional;
            let all = has.all_reduce_config.is_some()
                && has.all_gather_config.is_some()
                && has.reduce_scatter_config.is_some()
                && has.broadcast_config.is_some();
            let named = sharing::named(&opened.library);
            let why = format!("{named} takes no configuration of a call: 2.31 is the first");
            ((!all).then_some(why), opened)
        })
        .unzip();
    let lacks = setup.exchange("tell whether it can pin", lacks, |_, lacks| Ok(lacks))?;
    let why = lacks.map(|all| all.into_iter().flatten().next());
    if why.get().is_some() {
        setup.without(PINNED, why.map(Option::unwrap_or_default));
    }
    Ok(opened)
}

/// A rank of the communicator.
#[derive(Clone)]
pub(crate) struct Joined {
    pub(crate) comm: Arc<Comm>,
    pub(crate) device: Device,
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// Of each step of the set-up.
    pub(crate) deadline: Duration,
}

impl Joined {
    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.comm.library
    }

    /// Ends the communicator, and then what its calls may still use. Nobody waits for it.
    pub(crate) fn abandon<T: Send + 'static>(&self, used: T) {
        let comm = Arc::clone(&self.comm);
        let started = parting::spawn("abort", move || {
            comm.abort();
            drop(used);
        });
        if let Err(e) = started {
            tracing::warn!("a communicator stays: there is no thread to abort it: {e}");
        }
    }
}

/// Everybody joins, or the rank that failed is named, rather than one that waited for it.
fn join(
    setup: &mut Setup<'_>,
    opened: Local<Opened>,
    config: Config,
) -> Result<Local<Joined>, SetupError> {
    let asked = |opened: Opened| ((Arc::clone(&opened.library), opened.device.clone()), opened);
    let (asked, opened) = opened.map(asked).unzip();
    let ids = setup.exchange("draw the communicator's id", asked, |here, (library, device)| {
        if here.rank() != 0 {
            return Ok(None);
        }
        // It looks for networks, by plug-ins too.
        let drawn = within(deadline(here), "ncclGetUniqueId", move || {
            device.make_current().map_err(StepError::new)?;
            Ok(draw_id(&library)?)
        });
        Ok(Some(drawn?))
    })?;
    let id = ids.into_inner().into_iter().flatten().next();
    let joined = setup.step("begin to join", opened, move |here, opened| {
        let bytes = id.ok_or_else(|| StepError::new("rank 0 sent no id"))?;
        let bytes = bytes.try_into().map_err(|_| StepError::new("rank 0 sent no whole id"))?;
        let id = UniqueId::from_bytes(bytes);
        let (rank, world) = (here.rank(), here.world());
        let call_deadline = here.settings().call_deadline;
        let deadline = deadline(here);
        let Opened { device, library } = opened;
        let ticket = Ticket { id, rank, world, config, deadline: call_deadline };
        let on = device.clone();
        let what = "ncclCommInitRankConfig";
        let comm = within(deadline, what, move || Ok(Comm::join(library, &on, ticket)?));
        Ok(comm.map(|comm| Joined { comm: Arc::new(comm), device, rank, world, deadline }))
    })?;
    all_well(setup, "join the communicator", joined)
}

fn draw_id(library: &Library) -> Result<Vec<u8>, StepError> {
    let mut id = UniqueId::ZERO;
    // SAFETY: the place is valid for the call.
    let status = unsafe { (library.calls.get_unique_id)(&raw mut id) };
    match status.is_success() {
        true => Ok(id.to_bytes().to_vec()),
        false => {
            let text = words(library, status);
            Err(StepError::new(Failed { call: "ncclGetUniqueId", text }))
        }
    }
}

/// Every rank keeps what it has, or the rank that is to blame says why not.
pub(crate) fn all_well<T: 'static>(
    setup: &mut Setup<'_>,
    what: &str,
    mine: Local<Result<T, Fared>>,
) -> Result<Local<T>, SetupError> {
    let (fared, mine) = mine
        .map(|mine| match mine {
            Ok(made) => (Fared::Well, Some(made)),
            Err(why) => (why, None),
        })
        .unzip();
    let all = setup.exchange(&format!("tell whether it could {what}"), fared, |_, f| Ok(f))?;
    let blamed = blamed(all.get());
    setup.step(what, Local::new(()), move |here, ()| match blamed {
        Some((rank, why)) if rank == here.rank() => Err(StepError(why)),
        _ => Ok(()),
    })?;
    // The vote has passed, so that every rank has it.
    setup.step(what, mine, |_, mine| mine.ok_or_else(|| StepError::new("it is not there")))
}

/// The windows, where the group is one for which the library has symmetric kernels, and the
/// communicator that calls are made of.
fn open_windows<'g>(
    setup: &mut Setup<'g>,
    facts: &GroupFacts,
    joined: Local<Joined>,
    room: Agreed<'g, u64>,
    config: Config,
) -> Result<(Local<Option<Windows>>, Local<Joined>), SetupError> {
    let none = || Local::new(None);
    let symmetric = DESCRIPTOR.algorithms.iter().find(|a| a.name == SYMMETRIC);
    let refused = symmetric.and_then(|a| a.eligibility.failing_group(facts.profile()));
    if refused.is_some() {
        return Ok((none(), joined));
    }
    if *room.get() == 0 {
        setup.without(SYMMETRIC, room.map(|_| "nccl.window is 0".to_owned()));
        return Ok((none(), joined));
    }
    let (lent, joined) = joined.map(|joined| (joined.clone(), joined)).unzip();
    match window::set_up(setup, lent, room)? {
        Outcome::Had(windows) => {
            setup.limit(SYMMETRIC, room);
            Ok((windows.map(Some), joined))
        }
        Outcome::Without => Ok((none(), joined)),
        Outcome::Spoiled => {
            let opened = joined.map(|joined| {
                let library = Arc::clone(joined.library());
                Opened { device: joined.device, library }
            });
            Ok((none(), join(setup, opened, config)?))
        }
    }
}

/// From when calls have noticed that they are late until they have told.
const GRACE: Duration = Duration::from_secs(1);

/// All that a session is made of, and is proven to work.
struct Proven {
    joined: Joined,
    maker: Maker,
    windows: Option<Windows>,
}

/// Makes the first calls.
fn prove(
    setup: &mut Setup<'_>,
    joined: Local<Joined>,
    windows: Local<Option<Windows>>,
) -> Result<Local<Proven>, SetupError> {
    let nonces = setup.exchange("draw a nonce", Local::new(()), |_, ()| Ok(draw()))?;
    let nonce = nonces.get()[0];
    let (fared, kept) = joined
        .zip(windows)
        .map(move |(joined, windows)| {
            let group = joined.clone();
            // The calls look at the deadline themselves. This is for one that stays inside the
            // library.
            let outcome = within(joined.deadline + GRACE, "a first call", move || {
                let Joined { ref device, rank, world, .. } = joined;
                device.make_current().map_err(StepError::new)?;
                let maker = Maker::new(device.clone(), rank, world).map_err(StepError::new)?;
                let proven = Proven { joined, maker, windows };
                let fared = proven.call(nonce);
                Ok((proven, fared))
            });
            let (fared, kept) = match outcome {
                Ok((proven, Ok(()))) => (Ok(()), Some((proven, None))),
                Ok((proven, Err(Unproven { why, used }))) => (Err(why), Some((proven, used))),
                Err(fared) => (Err(fared), None),
            };
            (fared, (group, kept))
        })
        .unzip();
    let what = "make its first calls";
    if let Err(e) = all_well(setup, what, fared) {
        // Not before all have told how they fared: peers take an abort for a failure of their own.
        let _: Local<()> = kept.map(|(group, kept)| group.abandon(kept));
        return Err(e);
    }
    setup.step(what, kept, |_, (_, kept)| match kept {
        Some((proven, _)) => Ok(proven),
        None => Err(StepError::new("it is not there")),
    })
}

impl Proven {
    fn call(&self, nonce: u64) -> Result<(), Unproven> {
        let Proven { joined, maker, windows } = self;
        let until = Instant::now() + joined.deadline;
        trial::run(joined, maker, None, nonce, until)?;
        match windows {
            Some(windows) => trial::run(joined, maker, Some(windows), !nonce, until),
            None => Ok(()),
        }
    }
}

/// What the ranks of one node have together.
struct Node {
    board: Arc<Board>,
    liveness: Liveness,
}

/// Pages and signs of life, where all ranks are on one node and the control plane passes
/// descriptors. Elsewhere ranks do without: deadlines and the library find out what is wrong.
fn meet_on_node(
    setup: &mut Setup<'_>,
    facts: &GroupFacts,
) -> Result<Local<Option<Node>>, SetupError> {
    if facts.profile().nodes > 1 {
        return Ok(Local::new(None));
    }
    let made = setup.step("create the shared board", Local::new(()), |here, ()| sign(here))?;
    let (alive, shared) = made.unzip();
    match setup.exchange_fds("pass the shared board and signs of life", shared) {
        Ok(fds) => setup.step("map the shared board", alive.zip(fds), |here, (alive, fds)| {
            map(here.world(), alive, fds).map(Some)
        }),
        // It is so on every rank. A control plane that failed fails the next step as well.
        Err(_) => Ok(Local::new(None)),
    }
}

/// The own sign of life, and what peers get: its other end and, from rank 0, the board.
fn sign(here: &Here<'_>) -> Result<(Alive, Vec<OwnedFd>), StepError> {
    let (alive, watch) = liveness::pipe()?;
    let mut shared = vec![watch];
    if here.rank() == 0 {
        shared.push(Board::create(here.world())?);
    }
    Ok((alive, shared))
}

fn map(world: u32, alive: Alive, fds: Vec<Vec<OwnedFd>>) -> Result<Node, StepError> {
    let mut watches = Vec::with_capacity(fds.len());
    let mut file = None;
    for (rank, fds) in fds.into_iter().enumerate() {
        let mut fds = fds.into_iter();
        let watch = fds.next();
        watches.push(watch.ok_or_else(|| StepError(format!("rank {rank} sent no descriptor")))?);
        file = file.or(fds.next());
    }
    let file = file.ok_or_else(|| StepError::new("rank 0 sent no board"))?;
    let board = Board::map(file.as_fd(), world)?;
    Ok(Node { board, liveness: Liveness::new(alive, watches) })
}

fn begin(
    here: &Here<'_>,
    (proven, node): (Proven, Option<Node>),
    pins: Pins,
) -> Result<NcclSession, StepError> {
    parting::prepare(&parting::USED).map_err(StepError::new)?;
    let Proven { joined, maker, windows } = proven;
    let (board, liveness) = node.map(|node| (node.board, node.liveness)).unzip();
    let Joined { comm, device, .. } = joined;
    let shared = Arc::new(Shared {
        comm,
        ends: Arc::new(Ends::new(here.rank(), board)),
        bell: Bell::new(),
        liveness,
        maker,
        windows,
        behind: Event::new(&device).map_err(StepError::new)?,
        last: Last::new(),
        deadline: here.settings().call_deadline,
        probe: Stream::new(&device).map_err(StepError::new)?,
    });
    let watch = watch::start(&shared).map_err(|e| StepError(format!("no thread: {e}")))?;
    let (stream, history, process) = (None, 0, std::process::id());
    let (watch, is_captured) = (Some(watch), false);
    Ok(NcclSession { shared, watch, stream, history, pins, is_captured, process })
}

/// Random without a source of randomness: `RandomState` is seeded by the operating system.
fn draw() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::odd_one_out;

    #[test]
    fn the_rank_with_another_version_is_named() {
        let told = |versions: &[&str]| {
            let all: Vec<_> = versions.iter().map(|v| (format!("NCCL {v}"), "/a".into())).collect();
            odd_one_out(&all)
        };
        assert_eq!(told(&["2.27.5", "2.27.5"]), None);
        let why = "rank 2 has NCCL 2.21.5 (/a), the others NCCL 2.27.5".to_owned();
        assert_eq!(told(&["2.27.5", "2.27.5", "2.21.5"]), Some((2, why)));
        let why = "rank 0 has NCCL 2.21.5 (/a), the others NCCL 2.27.5".to_owned();
        assert_eq!(told(&["2.21.5", "2.27.5", "2.27.5"]), Some((0, why)));
        let why = "rank 1 has NCCL 2.21.5 (/a), the others NCCL 2.27.5".to_owned();
        assert_eq!(told(&["2.27.5", "2.21.5"]), Some((1, why)));
        let why = "rank 1 has NCCL 3.0.0 (/a), most others NCCL 2.27.5".to_owned();
        assert_eq!(told(&["2.27.5", "3.0.0", "2.27.5", "2.28.3"]), Some((1, why)));
    }
}
