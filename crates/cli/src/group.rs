//! From the environment and options to a group: all that this program asks of `crossover`.

use std::path::PathBuf;

use crossover::Builder;
use crossover_bootstrap::{Launch, Options, connect};
use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::Communicator;
use crossover_core::facts::HOST_ARCH;
use crossover_core::form::FormError;
use crossover_core::policy::Policy;
use crossover_core::settings::HOST_DEVICE;
use crossover_policy::{Settings, Sources};

use crate::failure::Failure;

/// The backend of groups on host memory.
const HOST_BACKEND: &str = "host";

/// What groups are formed from: the environment, read once, and options.
#[derive(Clone)]
pub(crate) struct Formation {
    builder: Builder,
}

/// A rank, and the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seat {
    pub(crate) rank: u32,
    pub(crate) world: u32,
}

impl Formation {
    /// Policy files from options take the place of those that `CROSSOVER_POLICY` names.
    pub(crate) fn from_env(policy: &[PathBuf]) -> Result<Formation, Failure> {
        let mut builder = Builder::from_env()?;
        if !policy.is_empty() {
            builder = builder.set("policy", joined(policy), "--policy");
        }
        Ok(Formation { builder })
    }

    /// This process's seat, if a launcher gave it one.
    pub(crate) fn seat(&self) -> Option<Seat> {
        let launch = self.builder.launch()?;
        Some(Seat { rank: launch.rank(), world: launch.world() })
    }

    /// With a setting that an option makes.
    pub(crate) fn set(self, key: &str, value: impl Into<String>, option: &str) -> Formation {
        Formation { builder: self.builder.set(key, value, option) }
    }

    /// As one rank of several threads.
    pub(crate) fn seated(self, launch: Launch) -> Formation {
        Formation { builder: self.builder.with_launch(launch) }
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        Ok(self.builder.settings()?)
    }

    /// This process's number among the ranks of its node, and how many those are.
    pub(crate) fn local_seat(&self) -> Option<Seat> {
        let launch = self.builder.launch()?;
        Some(Seat { rank: launch.local_rank(), world: launch.local_world() })
    }

    /// The policy in force, with a forced backend or algorithm if one is given.
    pub(crate) fn policy(&self, forced: Option<&str>) -> Result<Policy, Failure> {
        let builder = self.with(forced);
        let sources = Sources::of(&builder.settings()?, HOST_ARCH);
        Ok(sources.load(builder.registry())?.policy)
    }

    /// How many threads each rank keeps busy, as the setting `host.threads` has it. If it or any
    /// other is wrong, the ranks say so.
    pub(crate) fn threads(&self) -> u32 {
        let settings = self.settings().ok();
        settings.and_then(|all| all.backends.get("host.threads")?.parse().ok()).unwrap_or(1)
    }

    /// Forms a group. Collective.
    pub(crate) fn form(&self, forced: Option<&str>) -> Result<Communicator, Failure> {
        self.form_by(&self.with(forced))
    }

    /// Forms a group of the same ranks on host memory, whatever is forced and wherever their data
    /// is; they are on one node. Collective.
    pub(crate) fn form_on_host(&self) -> Result<Communicator, Failure> {
        let (device, forced, why) = (HOST_DEVICE, HOST_BACKEND, "a group on host memory");
        let builder = self.builder.clone().tag("beside");
        self.form_by(&builder.set("device", device, why).set("use", forced, why))
    }

    /// A control plane of the same ranks, beside those that groups keep. Collective.
    pub(crate) fn control_plane(&self) -> Result<Box<dyn Bootstrap>, Failure> {
        let settings = self.settings()?;
        let launch = self.builder.launch().cloned().unwrap_or_else(|| Launch::new(0, 1));
        // Ranks meet for it, and then wait by it for one another's calls.
        let for_calls = settings.group("beside").backends.call_deadline;
        let deadline = settings.form_timeout.unwrap_or_default().max(for_calls);
        let options = Options { deadline, node_id: settings.node_id, ..Options::default() };
        Ok(connect(&launch, &options).map_err(crossover::Error::from)?)
    }

    fn form_by(&self, builder: &Builder) -> Result<Communicator, Failure> {
        builder.form().map_err(|error| {
            let agreed = matches!(
                error,
                crossover::Error::Form(
                    FormError::Diverged { .. }
                        | FormError::Forced { .. }
                        | FormError::NoBackend { .. }
                )
            );
            let failure = Failure::from(error);
            match self.seat() {
                Some(seat) if agreed => failure.on_all_ranks(seat),
                _ => failure,
            }
        })
    }

    fn with(&self, forced: Option<&str>) -> Builder {
        let builder = self.builder.clone();
        match forced {
            Some(target) => builder.set("use", target, "--use"),
            None => builder,
        }
    }
}

/// Paths as the setting `policy` holds them.
pub(crate) fn joined(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(":")
}
