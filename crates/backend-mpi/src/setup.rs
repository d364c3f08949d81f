//! How a group comes up: MPI itself, a place in its world, connections beside it, a communicator,
//! proof. Each step is voted on, so it comes up on every rank or on none.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use crossover_backend_host::header::Header;
use crossover_core::agreement::{Agreed, Here, Local, Setup, SetupError, StepError};
use crossover_core::backend::{Backend, Ready, Session};
use crossover_core::facts::{GroupFacts, HOST_ARCH};

use crate::comm::Comm;
use crate::connect::{self, Party};
use crate::keeper::{self, Place};
use crate::library::Library;
use crate::round::Round;
use crate::session::MpiSession;
use crate::settings;
use crate::staging::Staging;
use crate::watch::Watch;

/// To begin with a library takes seconds where processors are few, whatever a call may take.
const LEAST_PATIENCE: Duration = Duration::from_secs(10);
/// What takes longer will not end, however long a call may take.
const MOST_PATIENCE: Duration = Duration::from_secs(20);
/// Tags of messages are at least up to this one.
const HIGHEST_TAG: u64 = 32_767;

/// Backend `mpi`, before it is bound to a group.
pub struct Mpi;

impl Backend for Mpi {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let (session, capacity) = open(setup, facts)?;
        Ok(Ready { session: session.map(|s| Box::new(s) as Box<dyn Session>), capacity })
    }
}

/// The session, and the most input bytes of a call: any, since tensors travel in chunks.
fn open<'g>(
    setup: &mut Setup<'g>,
    facts: &GroupFacts,
) -> Result<(Local<MpiSession>, Agreed<'g, u64>), SetupError> {
    let arch = facts.profile().arch.clone();
    setup.step("have its data in host memory", nothing(), move |_, ()| of_the_host(&arch))?;
    let asked = setup.read("read mpi.chunk", settings::chunk)?;
    let chunk = setup.least_bytes("mpi.chunk", asked)?;

    let library = setup.step("load MPI", nothing(), |here, ()| {
        let path = settings::library(here.settings());
        Library::of_process(path.as_deref()).map_err(StepError::new)
    })?;
    let begun = setup.step("begin with MPI", library, |here, library| {
        let place = keeper::begin(library, patience(here)).map_err(StepError)?;
        Ok((library, (library.version.clone(), place)))
    })?;
    let (library, told) = begun.unzip();
    let (version, place) = told.unzip();
    let version = setup.equal("load the same MPI library", version)?;
    let places =
        setup.exchange("tell its place in MPI's world", place, |_, Place { rank, size }| {
            Ok((rank, size))
        })?;
    let everyone = places.get().clone();
    setup.step("find every rank in MPI's world", nothing(), move |_, ()| {
        in_one_world(&everyone).map_err(StepError)
    })?;

    let nonces = setup.exchange("draw a nonce", nothing(), |_, ()| Ok(draw_nonce()))?;
    let listening = setup.step("listen for the others", nothing(), |_, ()| connect::listen())?;
    let (listener, addresses) = listening.unzip();
    let addresses = setup.exchange("tell where it listens", addresses, |_, all| Ok(all))?;
    let (all_nonces, all_addresses) = (nonces.get().clone(), addresses.get().clone());
    let watch = setup.step("connect to the others", listener, move |here, listener| {
        let (rank, deadline) = (here.rank(), patience(here));
        let party = Party { rank, addresses: all_addresses, nonces: all_nonces, deadline };
        connect::connect(&listener, &party)
    })?;

    let ranks: Vec<u32> = places.get().iter().map(|(rank, _)| *rank).collect();
    let tag = (nonces.get()[0] % HIGHEST_TAG) as c_int;
    let comm = setup.step("make a communicator", library, move |here, library| {
        let rank = here.rank();
        let make = move || Comm::create(library, &ranks, rank, tag);
        keeper::run_apart("MPI_Comm_create_group", patience(here), make).map_err(StepError)
    })?;
    let bytes = *chunk.get() as usize;
    let session =
        setup.step("meet the others through MPI", comm.zip(watch), move |here, parts| {
            meet(here, bytes, parts)
        })?;
    let library = version.get();
    tracing::debug!(target: "crossover::mpi", %library, chunk = bytes, "communicator ready");
    Ok((session, chunk.map(|_| u64::MAX)))
}

fn nothing() -> Local<()> {
    Local::new(())
}

fn patience(here: &Here<'_>) -> Duration {
    patience_of(here.settings().call_deadline, here.patience())
}

/// `votes` is how long peers that have voted wait for this rank's vote: a step that waits for peers ends well
/// before, or they think that this rank is gone.
fn patience_of(call: Duration, votes: Duration) -> Duration {
    call.clamp(LEAST_PATIENCE, MOST_PATIENCE).min(votes / 2)
}

/// Pointers of devices would be read as the host's.
fn of_the_host(arch: &str) -> Result<(), StepError> {
    match arch {
        HOST_ARCH => Ok(()),
        other => Err(StepError(format!(
            "this group is on {other}, and backend mpi moves host memory alone"
        ))),
    }
}

/// Random without a source of randomness: `RandomState` is seeded by the operating system.
fn draw_nonce() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Are these ranks, each with its rank and the size of its world, different ones of one world?
fn in_one_world(places: &[(u32, u32)]) -> Result<(), String> {
    let cure = "start the group's ranks by one launcher of MPI, such as `mpiexec -n 8 PROGRAM` or `srun \
                --mpi=pmi2 PROGRAM`";
    let world = places.len();
    if let Some(alone) = places.iter().position(|(_, size)| (*size as usize) < world) {
        let size = places[alone].1;
        return Err(format!(
            "rank {alone} is in a world of {size} by MPI, and the group has {world}: {cure}"
        ));
    }
    let mut seen = BTreeMap::new();
    for (rank, (place, _)) in places.iter().enumerate() {
        if let Some(first) = seen.insert(place, rank) {
            return Err(format!("ranks {first} and {rank} are both rank {place} by MPI: {cure}"));
        }
    }
    let (_, size) = places[0];
    match places.iter().position(|(_, other)| *other != size) {
        None => Ok(()),
        Some(odd) => Err(format!(
            "rank 0 is in a world of {size} by MPI, rank {odd} in one of {}: {cure}",
            places[odd].1
        )),
    }
}

/// Proves that messages arrive, whichever network they take, before a call depends on it.
fn meet(
    here: &Here<'_>,
    chunk: usize,
    (comm, watch): (Comm, Watch),
) -> Result<MpiSession, StepError> {
    let staging = Staging::new(here.world());
    let deadline = patience(here);
    let mut session = MpiSession { comm, watch: Arc::new(watch), staging, deadline, chunk };
    Round::new(&mut session, Header::of_close(0)).meet(None).map_err(StepError::new)?;
    session.deadline = here.settings().call_deadline;
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_before_its_peers_give_up() {
        let patience = |call, votes| {
            patience_of(Duration::from_secs(call), Duration::from_secs(votes)).as_secs()
        };
        assert_eq!((patience(1, 300), patience(15, 300), patience(90, 300)), (10, 15, 20));
        assert_eq!((patience(1, 6), patience(90, 30)), (3, 15));
    }

    #[test]
    fn ranks_are_different_ones_of_one_world() {
        assert_eq!(in_one_world(&[(3, 4), (0, 4)]), Ok(()));
        let check = |places: &[(u32, u32)], want: &str| {
            let told = in_one_world(places).expect_err(want);
            assert!(told.starts_with(want) && told.contains("mpiexec -n"), "{told}");
        };
        check(&[(0, 1), (0, 1)], "rank 0 is in a world of 1 by MPI, and the group has 2");
        check(&[(0, 2), (0, 2)], "ranks 0 and 1 are both rank 0 by MPI");
        check(&[(0, 2), (1, 3)], "rank 0 is in a world of 2 by MPI, rank 1 in one of 3");
    }
}
