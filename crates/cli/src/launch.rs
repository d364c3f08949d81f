//! `crossover launch`: starts a command as the ranks of one job on this node.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use clap::ValueEnum;
use crossover_bootstrap::launcher::{Bind, Ending, Job, LauncherError, Outcome, Output};
use crossover_recorder::Life;

use crate::failure::Failure;
use crate::group::Formation;
use crate::out;

/// Start a command as N ranks on this node, each told its place by CROSSOVER_* variables
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of ranks
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,
    /// What becomes of the ranks' output
    #[arg(long, value_enum, default_value_t = Show::Inherited)]
    output: Show,
    /// On which processors the ranks run
    #[arg(long, value_enum, default_value_t = Processors::Spread)]
    bind: Processors,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Show {
    /// All ranks write to this program's streams as they like
    Inherited,
    /// Line by line, each after `[rank] `
    Prefixed,
    /// Rank 0's standard output alone, unchanged; standard error of all, prefixed
    RankZero,
}

#[derive(Clone, Copy, ValueEnum)]
enum Processors {
    /// Each rank on a share of its own of those that this program may use
    Spread,
    /// Each rank on all of them
    None,
}

/// A shell's codes for a command that is not there, and for one that is no program.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Ends with the code of the first rank that failed; 128 and the signal's number if one ended it, or the
/// job; and not with 0 if output of theirs is lost.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let mut command = args.command.into_iter();
    let program = command.next().unwrap_or_default(); // clap requires one
    let job = Job::new(args.ranks, program, command).output(match args.output {
        Show::Inherited => Output::Inherited,
        Show::Prefixed => Output::Prefixed,
        Show::RankZero => Output::RankZero,
    });
    let job = job.bind(match args.bind {
        Processors::Spread => Bind::Spread,
        Processors::None => Bind::Nowhere,
    });
    let job = job.threads(Formation::from_env(&[]).map_or(1, |formation| formation.threads()));
    let outcome = see_through(job)?;
    if let Some(why) = &outcome.lost {
        let failure = Failure::from(io::Error::other(why.as_str()));
        if outcome.code == 0 {
            return Err(failure);
        }
        out::complain(&failure);
    }
    match outcome.cause().filter(|_| outcome.stop.is_none()) {
        Some(cause) => Err(Failure::with_code(outcome.code, cause)),
        None if outcome.code == 0 => Ok(()),
        None => Err(Failure::silent(outcome.code)),
    }
}

/// Starts a job whose ranks report their own failures: what it adds is how a rank ended that
/// could not.
pub(crate) fn run_own(job: Job) -> Result<(), Failure> {
    let outcome = see_through(job)?;
    match (outcome.code, outcome.failures.first().map(|failure| failure.how)) {
        (0, _) => Ok(()),
        (_, Some(Ending::Signal(_))) => Err(Failure::lost(outcome.cause().unwrap_or_default())),
        (code, _) => Err(Failure::silent(code)),
    }
}

/// Runs a job to its end, and reads what ranks have left that could not tell why they ended. That a job
/// was stopped is no mistake of anybody's: it is said here, and nothing is read.
fn see_through(job: Job) -> Result<Outcome, Failure> {
    let outcome = job.run()?;
    if let Some(stop) = &outcome.stop {
        out::note(&stop.to_string());
    }
    let settings = Formation::from_env(&[]).and_then(|formation| formation.settings());
    if let Ok(settings) = settings
        && let Some(rings) = &settings.recording.rings
    {
        if outcome.stop.is_some() {
            crossover_recorder::sweep(&outcome.job, rings);
            return Ok(outcome);
        }
        let ended = outcome.left.iter().flat_map(|left| {
            let running = left.running.iter().map(|pid| (*pid, Life::Running));
            running.chain(left.stopped.iter().map(|pid| (*pid, Life::Stopped)))
        });
        let ended: BTreeMap<u32, Life> = ended.collect();
        let dumps = crossover::dumps(&settings.recording.dumps);
        for said in crossover_recorder::after(&outcome.job, rings, &dumps, &ended) {
            out::note(&said);
        }
    }
    Ok(outcome)
}

impl From<LauncherError> for Failure {
    fn from(error: LauncherError) -> Failure {
        let code = match &error {
            LauncherError::Spawn { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                io::ErrorKind::PermissionDenied => NOT_EXECUTABLE,
                _ => 2,
            },
            _ => 2,
        };
        Failure::with_code(code, error.to_string())
    }
}
