//! `crossover policy diff`: which decisions a change of a policy changes, not which text.

use std::io::Write;
use std::path::PathBuf;

use crossover_policy::diff::{Change, Multiples, diff};
use crossover_policy::lint::Options;
use serde_json::{Value, json};

use super::{Engine, Over};
use crate::explain::{capacity, known};
use crate::failure::Failure;
use crate::out::Out;

/// Say which decisions differ between two policy files; between without and with one, if one is given
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The old file, and the new one
    #[arg(num_args = 1..=2, required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    over: Over,
    #[command(flatten)]
    engine: Engine,
    /// Room that a backend was set up with, in input bytes per rank
    #[arg(long, value_name = "ID=SIZE", value_parser = capacity)]
    capacity: Vec<(String, u64)>,
    /// Exit with 1 if a decision differs
    #[arg(long)]
    exit_code: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let registry = crossover_backends::registry()?;
    let (old, new) = args.files.split_at(args.files.len() - 1);
    known(&args.capacity, &registry)?;
    let (old, settings) = args.over.sources(old, "", &registry)?;
    let (new, _) = args.over.sources(new, "", &registry)?;
    let options = Options {
        contract: args.engine.contract(settings.contract),
        capacities: args.capacity.iter().cloned().collect(),
        ..Options::default()
    };
    let changes = diff(&old, &new, &registry, &options)?;
    let mut out = Out::new();
    if args.json {
        out.json(&changes.iter().map(record).collect::<Vec<_>>())?;
    } else {
        for change in &changes {
            writeln!(out, "{change}")?;
        }
        if changes.is_empty() {
            writeln!(out, "no decision differs")?;
        }
        out.flush()?;
    }
    if args.exit_code && !changes.is_empty() { Err(Failure::silent(1)) } else { Ok(()) }
}

fn record(change: &Change) -> Value {
    let Multiples { of, not_of } = change.multiples;
    let under = change.under.map(|contract| {
        json!({
            "determinism": contract.determinism.to_string(),
            "accept": contract.accept.iter().map(|deviation| deviation.name()).collect::<Vec<_>>(),
        })
    });
    json!({
        "groups": change.groups,
        "op": change.op,
        "dtype": change.dtypes.iter().collect::<Vec<_>>(),
        "mode": change.modes.iter().collect::<Vec<_>>(),
        "reduce_op": change.reduce_ops.iter().collect::<Vec<_>>(),
        "from": change.from,
        "to": change.to,
        "multiples": { "of": of, "not_of": not_of },
        "under": under,
        "old": change.old,
        "new": change.new,
    })
}
