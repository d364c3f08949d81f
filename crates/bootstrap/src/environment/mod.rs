//! Launchers' environment variables.

mod family;
mod slurm;

use std::path::PathBuf;

use self::family::{Facts, families};
use crate::launch::{Family, Launch};
use crate::rendezvous::{Place, PlaceError};

const JOB: &str = "CROSSOVER_JOB";
const ATTEMPT: &str = "CROSSOVER_ATTEMPT";
const RENDEZVOUS: &str = "CROSSOVER_RENDEZVOUS";

/// The environment says something that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The rendezvous is no address.
    #[error("CROSSOVER_RENDEZVOUS is `{value}`: {why}")]
    BadPlace {
        /// As set.
        value: String,
        /// What is wrong with it.
        why: PlaceError,
    },
    /// Two launchers' variables are both complete, and differ.
    #[error(
        "{one}={one_value} ({one_family}) and {other}={other_value} ({other_family}) contradict each other: unset the variables of the launcher that did not start this process"
    )]
    Contradiction {
        /// A variable.
        one: &'static str,
        /// Its value.
        one_value: u32,
        /// Its launcher.
        one_family: &'static str,
        /// Another launcher's variable for the same fact.
        other: &'static str,
        /// Its value.
        other_value: u32,
        /// Its launcher.
        other_family: &'static str,
    },
    /// A launcher's variables are there in part.
    #[error("{present} is set but {missing} is not: start with {family}, or set all of {all}")]
    Incomplete {
        /// One that is set.
        present: &'static str,
        /// One that is not.
        missing: &'static str,
        /// The launcher that sets them.
        family: &'static str,
        /// All that it sets.
        all: String,
    },
    /// Several nodes, and nowhere to meet.
    #[error(
        "the job spans several nodes and has no address to meet at: {why}set CROSSOVER_RENDEZVOUS to tcp://HOST:PORT, with a free port of rank 0's node, or to file:/PATH on a shared file system"
    )]
    NoPlace {
        /// Why the launcher's own address does not serve; empty, or ends in a semicolon and a space.
        why: &'static str,
    },
    /// A value that must be a number is none.
    #[error("{variable} is `{value}`, which is no {what}")]
    NotANumber {
        /// Which.
        variable: &'static str,
        /// As set.
        value: String,
        /// What it must be.
        what: &'static str,
    },
    /// A rank is not below the number of ranks, or there are more ranks on the node than in all.
    #[error(
        "{lesser}={lesser_value} must be {relation} {greater}={greater_value}: the two were not set by one launcher"
    )]
    OutOfRange {
        /// The variable that is too great.
        lesser: &'static str,
        /// Its value.
        lesser_value: u32,
        /// `less than` or `at most`.
        relation: &'static str,
        /// The variable that bounds it.
        greater: &'static str,
        /// Its value.
        greater_value: u32,
    },
}

/// See [`Launch::from_env`].
pub(crate) fn read(variable: &Variables<'_>) -> Result<Option<Launch>, LaunchError> {
    let Some(facts) = choose(variable)? else { return Ok(None) };
    let launch = Launch::new(facts.rank.value, facts.world.value)
        .local(facts.local_rank.value, facts.local_world.value)
        .named(job(variable, &facts), attempt(variable, facts.family)?)
        .of_family(facts.family);
    if facts.world.value == 1 && set(variable, RENDEZVOUS).is_none() {
        return Ok(Some(launch));
    }
    let place = place(variable, &facts, &launch)?;
    Ok(Some(launch.at(place)))
}

/// How variables are read.
type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// An empty variable is an unset one.
fn set(variable: &Variables<'_>, name: &str) -> Option<String> {
    variable(name).filter(|value| !value.trim().is_empty())
}

fn number(variable: &Variables<'_>, name: &'static str) -> Result<Option<u32>, LaunchError> {
    let Some(value) = set(variable, name) else { return Ok(None) };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(LaunchError::NotANumber { variable: name, value, what: "number" }),
    }
}

/// The facts of the one family that started this process.
fn choose(variable: &Variables<'_>) -> Result<Option<Facts>, LaunchError> {
    let mut complete = Vec::new();
    let mut incomplete = None;
    for family in families() {
        match family.facts(variable) {
            Ok(Some(facts)) => complete.push(facts),
            Ok(None) => {}
            Err(e) if family.family == Family::Crossover => return Err(e),
            // Some launchers set a part of another's variables (`srun --mpi=pmi2` sets PMI_RANK).
            Err(e @ LaunchError::Incomplete { .. }) => incomplete = incomplete.or(Some(e)),
            Err(e) => return Err(e),
        }
    }
    let is_outer = |outer: &Facts| complete.iter().any(|inner| inner.is_nested_in(outer));
    let candidates: Vec<&Facts> = complete.iter().filter(|facts| !is_outer(facts)).collect();
    let Some((chosen, rest)) = candidates.split_first() else {
        return incomplete.map_or(Ok(None), Err);
    };
    if chosen.family != Family::Crossover {
        rest.iter().try_for_each(|other| chosen.agrees_with(other))?;
    }
    Ok(Some((*chosen).clone()))
}

/// A name that is the same on all ranks of the job and on no other job's, as far as the launcher
/// gives one.
fn job(variable: &Variables<'_>, facts: &Facts) -> String {
    let get = |name| set(variable, name);
    let own = match facts.family {
        Family::Torchrun => {
            // The run id is `none` unless asked for; the port is one job's on its node.
            let parts = ["TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"].map(get);
            Some(parts.into_iter().flatten().collect::<Vec<_>>().join("-"))
        }
        Family::OpenMpi => get("PMIX_NAMESPACE").or_else(|| get("OMPI_MCA_ess_base_jobid")),
        Family::Hydra => get("PMI_JOBID"),
        Family::Slurm => {
            get("SLURM_JOB_ID").zip(get("SLURM_STEP_ID")).map(|(j, s)| format!("{j}.{s}"))
        }
        Family::Crossover | Family::Explicit | Family::Mvapich2 => None,
    };
    get(JOB).or(own).filter(|job| !job.is_empty()).unwrap_or_else(|| "unnamed".to_owned())
}

fn attempt(variable: &Variables<'_>, family: Family) -> Result<u32, LaunchError> {
    let launchers = match family {
        Family::Torchrun => number(variable, "TORCHELASTIC_RESTART_COUNT")?,
        Family::Slurm => number(variable, "SLURM_RESTART_COUNT")?,
        _ => None,
    };
    Ok(number(variable, ATTEMPT)?.or(launchers).unwrap_or(0))
}

fn place(variable: &Variables<'_>, facts: &Facts, launch: &Launch) -> Result<Place, LaunchError> {
    if let Some(value) = set(variable, RENDEZVOUS) {
        return value.parse().map_err(|why| LaunchError::BadPlace { value, why });
    }
    if !launch.spans_nodes() {
        let base = set(variable, "XDG_RUNTIME_DIR").filter(|dir| dir.starts_with('/'));
        let base = base.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let identity = format!("{:?} {} {}", facts.family, launch.job(), launch.attempt());
        let name = format!("crossover-{:016x}", xxhash_rust::xxh3::xxh3_64(identity.as_bytes()));
        return Ok(Place::JobDirectory { base, name });
    }
    if set(variable, "TORCHELASTIC_USE_AGENT_STORE").is_some_and(|v| v.eq_ignore_ascii_case("true"))
    {
        let why = "torchrun itself listens at MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE is true); ";
        return Err(LaunchError::NoPlace { why });
    }
    let Some(host) = set(variable, "MASTER_ADDR") else {
        return Err(LaunchError::NoPlace { why: "" });
    };
    match set(variable, "MASTER_PORT") {
        None => Err(LaunchError::NoPlace { why: "MASTER_ADDR is set but MASTER_PORT is not; " }),
        Some(value) => match value.trim().parse() {
            Ok(port) if port > 0 => Ok(Place::Tcp { host, port }),
            _ => Err(LaunchError::NotANumber { variable: "MASTER_PORT", value, what: "port" }),
        },
    }
}
