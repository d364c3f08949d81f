//! `crossover policy show`: what is in force, and where each value of it comes from.

use std::io::Write;
use std::path::PathBuf;

use crossover_core::facts::HOST_ARCH;
use crossover_policy::show::{record, text};

use super::Over;
use crate::failure::Failure;
use crate::out::Out;
use crate::words::architecture;

/// Print the policy in force, in the order in which its rules are tried, with the place of every value
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Policy files of the user layer; those of the environment, if none is given
    files: Vec<PathBuf>,
    #[command(flatten)]
    over: Over,
    /// Architecture whose pack is in force
    #[arg(long, default_value = HOST_ARCH, value_parser = architecture)]
    arch: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let registry = crossover_backends::registry()?;
    let (sources, _) = args.over.sources(&args.files, &args.arch, &registry)?;
    let effective = sources.load(&registry)?;
    let mut out = Out::new();
    match args.json {
        true => out.json(&record(&effective)),
        false => Ok(write!(out, "{}", text(&effective)).and_then(|()| out.flush())?),
    }
}
