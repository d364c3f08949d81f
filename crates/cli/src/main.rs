//! The program `crossover`: measures collectives, says who would run a call and why, and checks
//! whether a node is fit for them.
//!
//! A file for each command; what they share is in [`failure`] (errors and exit codes), [`out`]
//! (the two streams), [`words`] (vocabularies as option values) and [`group`] (forming a group).

mod backends;
mod diagnose;
mod doctor;
mod explain;
mod failure;
mod group;
mod launch;
mod logging;
mod out;
mod perf;
mod policy;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Collectives for LLM inference: measure them, ask why a call takes its path, check a node.
#[derive(Parser)]
#[command(name = "crossover", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Backends(backends::Args),
    Diagnose(diagnose::Args),
    Doctor(doctor::Args),
    Explain(explain::Args),
    Launch(launch::Args),
    Perf(perf::Args),
    Policy(policy::Args),
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 wrong result or failed check, 2 bad usage or bad \
                          file, 3 nothing eligible, 4 a peer was lost or a deadline passed.";

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    logging::init();
    let done = match command {
        Command::Backends(args) => backends::run(&args),
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Launch(args) => launch::run(args),
        Command::Perf(args) => perf::run(&args),
        Command::Policy(args) => policy::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out::complain(&failure);
            failure.exit_code()
        }
    }
}
