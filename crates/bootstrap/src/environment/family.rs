//! One launcher's four facts.

use super::{LaunchError, Variables, number, set, slurm};
use crate::launch::{Family, Launch};

/// A launcher and its variables.
pub(super) struct Names {
    pub(super) family: Family,
    launcher: &'static str,
    /// Rank, world, local rank, local world.
    variables: [&'static str; 4],
}

/// A number and the variable that said it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    pub(super) variable: &'static str,
    pub(super) value: u32,
}

/// What one family says.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) family: Family,
    launcher: &'static str,
    pub(super) rank: Fact,
    pub(super) world: Fact,
    pub(super) local_rank: Fact,
    pub(super) local_world: Fact,
}

/// All families, the one to prefer where several agree first.
///
/// Sources: PyTorch `torchrun` documentation; Open MPI 5.0 "Environment variables set for MPI
/// applications"; MPICH Hydra and Intel MPI set the PMI-1 names and `MPI_LOCAL*`; MVAPICH2's
/// `mpirun_rsh` (src/pm/mpirun/mpispawn.c); Slurm `srun` manual, "OUTPUT ENVIRONMENT VARIABLES".
pub(super) fn families() -> [Names; 6] {
    let names = |family, launcher, variables| Names { family, launcher, variables };
    [
        names(
            Family::Crossover,
            "crossover launch",
            [
                "CROSSOVER_RANK",
                "CROSSOVER_WORLD_SIZE",
                "CROSSOVER_LOCAL_RANK",
                "CROSSOVER_LOCAL_WORLD_SIZE",
            ],
        ),
        names(
            Family::Torchrun,
            "torchrun",
            ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"],
        ),
        names(
            Family::OpenMpi,
            "Open MPI's mpirun",
            [
                "OMPI_COMM_WORLD_RANK",
                "OMPI_COMM_WORLD_SIZE",
                "OMPI_COMM_WORLD_LOCAL_RANK",
                "OMPI_COMM_WORLD_LOCAL_SIZE",
            ],
        ),
        names(
            Family::Mvapich2,
            "MVAPICH2's mpirun_rsh",
            [
                "MV2_COMM_WORLD_RANK",
                "MV2_COMM_WORLD_SIZE",
                "MV2_COMM_WORLD_LOCAL_RANK",
                "MV2_COMM_WORLD_LOCAL_SIZE",
            ],
        ),
        names(
            Family::Hydra,
            "Hydra's mpiexec",
            ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"],
        ),
        names(
            Family::Slurm,
            "srun",
            ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"],
        ),
    ]
}

impl Names {
    /// What it says, if it says anything.
    pub(super) fn facts(&self, variable: &Variables<'_>) -> Result<Option<Facts>, LaunchError> {
        // A batch script or an allocation's shell has SLURM_PROCID=0 and SLURM_NTASKS of the whole
        // job; only a step's tasks are ranks.
        if self.family == Family::Slurm && set(variable, "SLURM_STEP_ID").is_none() {
            return Ok(None);
        }
        let is_set = |name: &&'static str| set(variable, name).is_some();
        let Some(present) = self.variables.iter().copied().find(|name| is_set(name)) else {
            return Ok(None);
        };
        if let Some(missing) = self.variables.iter().copied().find(|name| !is_set(name)) {
            let (family, all) = (self.launcher, self.variables.join(", "));
            return Err(LaunchError::Incomplete { present, missing, family, all });
        }
        let fact = |at: usize| {
            let name = self.variables[at];
            let value = match (self.family, at) {
                (Family::Slurm, 3) => slurm::tasks_here(variable, name)?,
                _ => number(variable, name)?.unwrap_or_default(),
            };
            Ok(Fact { variable: name, value })
        };
        let facts = Facts {
            family: self.family,
            launcher: self.launcher,
            rank: fact(0)?,
            world: fact(1)?,
            local_rank: fact(2)?,
            local_world: fact(3)?,
        };
        facts.check()?;
        Ok(Some(facts))
    }
}

impl Facts {
    /// Does `outer` start one process a node, in which this family's launcher runs?
    pub(super) fn is_nested_in(&self, outer: &Facts) -> bool {
        outer.family != Family::Crossover
            && outer.local_world.value == 1
            && self.world.value > outer.world.value
    }

    pub(super) fn agrees_with(&self, other: &Facts) -> Result<(), LaunchError> {
        let pairs = [
            (self.rank, other.rank),
            (self.world, other.world),
            (self.local_rank, other.local_rank),
            (self.local_world, other.local_world),
        ];
        match pairs.into_iter().find(|(a, b)| a.value != b.value) {
            None => Ok(()),
            Some((a, b)) => Err(LaunchError::Contradiction {
                one: a.variable,
                one_value: a.value,
                one_family: self.launcher,
                other: b.variable,
                other_value: b.value,
                other_family: other.launcher,
            }),
        }
    }

    fn check(&self) -> Result<(), LaunchError> {
        let out_of_range = |lesser: Fact, relation, greater: Fact| LaunchError::OutOfRange {
            lesser: lesser.variable,
            lesser_value: lesser.value,
            relation,
            greater: greater.variable,
            greater_value: greater.value,
        };
        if self.world.value > Launch::MOST_RANKS {
            return Err(LaunchError::NotANumber {
                variable: self.world.variable,
                value: self.world.value.to_string(),
                what: "number of ranks (at most 65536)",
            });
        }
        for (lesser, greater) in [(self.rank, self.world), (self.local_rank, self.local_world)] {
            if lesser.value >= greater.value {
                return Err(out_of_range(lesser, "less than", greater));
            }
        }
        if self.local_world.value > self.world.value {
            return Err(out_of_range(self.local_world, "at most", self.world));
        }
        Ok(())
    }
}
