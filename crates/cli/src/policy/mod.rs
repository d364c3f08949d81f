//! `crossover policy`: check policy files, show what is in force, say which decisions a change
//! changes, and take over other systems' tables.

mod diff;
mod import;
mod lint;
mod schema;
mod show;

use std::path::PathBuf;

use clap::Subcommand;
use crossover_core::contract::{Contract, Determinism, Deviation};
use crossover_core::registry::Registry;
use crossover_policy::{Override, Settings, Sources};

use crate::failure::Failure;
use crate::group::joined;
use crate::words::one_of;

/// Check policy files, show what is in force, compare, import other systems' tables
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Diff(diff::Args),
    Import(import::Args),
    Lint(lint::Args),
    Schema(schema::Args),
    Show(show::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Diff(args) => diff::run(args),
        Command::Import(args) => import::run(args),
        Command::Lint(args) => lint::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Show(args) => show::run(args),
    }
}

/// What files are laid over.
#[derive(clap::Args)]
struct Over {
    /// The builtin floor alone: no pack, and nothing from the environment
    #[arg(long)]
    isolated: bool,
}

/// What the engine demands and accepts.
#[derive(clap::Args)]
struct Engine {
    /// Deviations that the engine accepts, with commas between
    #[arg(long, value_delimiter = ',', value_parser = one_of::<Deviation>(Deviation::NAMES))]
    accept: Option<Vec<Deviation>>,
    /// The least reproducibility that the engine demands
    #[arg(long, value_parser = one_of::<Determinism>(Determinism::NAMES))]
    determinism: Option<Determinism>,
}

impl Engine {
    /// The engine's contract, if any of it is stated; the rest is as the settings have it.
    fn contract(&self, settings: Contract) -> Option<Contract> {
        let accept = self.accept.as_ref().map(|accept| accept.iter().copied().collect());
        (accept.is_some() || self.determinism.is_some()).then(|| Contract {
            determinism: self.determinism.unwrap_or(settings.determinism),
            accept: accept.unwrap_or(settings.accept),
        })
    }
}

impl Over {
    /// These files over the shipped ones, the site's, and what the environment says; the
    /// environment's own files, if there are none.
    fn sources(
        &self,
        files: &[PathBuf],
        arch: &str,
        registry: &Registry,
    ) -> Result<(Sources, Settings), Failure> {
        let stated = (!files.is_empty()).then(|| Override {
            key: "policy".to_owned(),
            value: joined(files),
            origin: "the command line".to_owned(),
        });
        let variables = std::env::vars_os().filter(|_| !self.isolated);
        let settings = Settings::load(variables, stated.as_slice(), registry)?;
        let sources = Sources::of(&settings, arch);
        Ok((if self.isolated { sources.alone() } else { sources }, settings))
    }
}
