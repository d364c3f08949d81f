//! What a process must know to meet its peers, however it was started.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::environment::{self, LaunchError};
use crate::rendezvous::Place;

/// One rank's place in its job. Made by an engine that knows its ranks, or read from the
/// environment of a launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    rank: u32,
    world: u32,
    local_rank: u32,
    local_world: u32,
    job: String,
    attempt: u32,
    place: Option<Place>,
    family: Family,
}

/// Whose variables, if any, the facts were taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// This program's own `CROSSOVER_*` variables, as `crossover launch` sets them.
    Crossover,
    /// Stated by the engine.
    Explicit,
    /// MPICH's and Intel MPI's process manager.
    Hydra,
    /// MVAPICH2's `mpirun_rsh`.
    Mvapich2,
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// `srun`.
    Slurm,
    /// PyTorch's `torchrun`.
    Torchrun,
}

impl Launch {
    /// The most that a job may have, beyond any that there is: a mistyped number must not be
    /// allocated for.
    pub const MOST_RANKS: u32 = 65_536;

    /// Rank `rank` of `world` ranks, all on this node unless [`local`](Launch::local) says
    /// otherwise; the rendezvous is still to be given.
    ///
    /// # Panics
    ///
    /// If `rank >= world`, or `world` is above [`Launch::MOST_RANKS`]: an engine that states its
    /// ranks states them right.
    pub fn new(rank: u32, world: u32) -> Self {
        assert!(
            world <= Self::MOST_RANKS,
            "a world of {world} ranks, and there are at most {}",
            Self::MOST_RANKS
        );
        assert!(rank < world, "rank {rank} of a world of {world} ranks");
        Launch {
            rank,
            world,
            local_rank: rank,
            local_world: world,
            job: "unnamed".to_owned(),
            attempt: 0,
            place: None,
            family: Family::Explicit,
        }
    }

    /// This rank's number among the ranks of its node, and how many they are.
    ///
    /// # Panics
    ///
    /// If there are more of them than ranks, or the number is not below their count.
    #[must_use]
    pub fn local(mut self, local_rank: u32, local_world: u32) -> Self {
        let (rank, world) = (self.rank, self.world);
        assert!(
            local_rank < local_world && local_world <= world,
            "local rank {local_rank} of {local_world} for rank {rank} of {world}"
        );
        (self.local_rank, self.local_world) = (local_rank, local_world);
        self
    }

    /// Names the job and its attempt; peers with other ones are refused.
    #[must_use]
    pub fn named(mut self, job: impl Into<String>, attempt: u32) -> Self {
        (self.job, self.attempt) = (job.into(), attempt);
        self
    }

    /// Where to meet.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Reads a launcher's variables through `variable`, which is `|name| std::env::var(name).ok()`
    /// outside tests. `None` if no launcher has set any.
    ///
    /// All facts come from one complete family. A family that starts one process a node only to
    /// start another launcher there (`srun torchrun`, `mpirun` under Slurm), or one batch shell,
    /// yields to the other. The own variables win over any other family; `CROSSOVER_JOB`,
    /// `CROSSOVER_ATTEMPT` and `CROSSOVER_RENDEZVOUS` also complete another one.
    ///
    /// # Errors
    ///
    /// Names the variable, its value, and what to do.
    pub fn from_env(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, LaunchError> {
        environment::read(variable)
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks.
    pub fn world(&self) -> u32 {
        self.world
    }

    /// This rank's number on its node: which of the node's devices to take.
    pub fn local_rank(&self) -> u32 {
        self.local_rank
    }

    /// Number of ranks on this node.
    pub fn local_world(&self) -> u32 {
        self.local_world
    }

    /// The job's name, the same on all its ranks.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// How often the job was restarted.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Where to meet, if that is known.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Where the facts come from.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Are some ranks on other nodes?
    pub fn spans_nodes(&self) -> bool {
        self.local_world < self.world
    }

    /// Does `crossover launch` end this job, because it was asked to? It says so beside the socket at which
    /// ranks meet, before it tells any rank. Ranks that go then have not failed.
    pub fn is_being_stopped(&self) -> bool {
        let Some(Place::Unix(socket)) = &self.place else { return false };
        let own = rustix::process::geteuid().as_raw();
        // In a folder where everybody writes, others' words are none.
        self.family == Family::Crossover
            && std::fs::symlink_metadata(stop_mark(socket))
                .is_ok_and(|meta| meta.is_file() && meta.uid() == own)
    }

    pub(crate) fn of_family(mut self, family: Family) -> Self {
        self.family = family;
        self
    }
}

/// The file that says that a job is being stopped.
pub(crate) fn stop_mark(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".stopped");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_world_is_a_launch() {
        let world = Launch::MOST_RANKS;
        assert_eq!(Launch::new(world - 1, world).world(), world);
    }

    #[test]
    #[should_panic(expected = "a world of 65537 ranks, and there are at most 65536")]
    fn a_greater_world_is_none() {
        let _ = Launch::new(0, Launch::MOST_RANKS + 1);
    }

    #[test]
    fn only_a_launcher_of_this_user_stops_a_job() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("rendezvous");
        let launch = |family| Launch::new(0, 2).at(Place::Unix(socket.clone())).of_family(family);
        assert!(!launch(Family::Crossover).is_being_stopped());
        std::os::unix::fs::symlink("/dev/null", stop_mark(&socket)).expect("linked");
        assert!(!launch(Family::Crossover).is_being_stopped(), "it is no file");
        std::fs::remove_file(stop_mark(&socket)).expect("it is there");
        std::fs::write(stop_mark(&socket), "").expect("written");
        assert!(launch(Family::Crossover).is_being_stopped());
        assert!(!launch(Family::Slurm).is_being_stopped(), "another launcher's place");
        assert!(!Launch::new(0, 2).of_family(Family::Crossover).is_being_stopped());
    }
}
