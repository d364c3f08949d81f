//! `cargo xtask bench`: this project beside other libraries of collectives, on this machine.

mod complaint;
mod floor;
mod install;
mod options;
mod peer;
mod record;
mod report;
mod rounds;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use record::Record;

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Install what can be had of the peers, measure all in turns, and print the tables
    Peers(Peers),
    /// Print the tables of a measurement again
    Report {
        /// Where `bench peers` wrote
        dir: PathBuf,
        /// The least of the rounds in place of their median: where a virtual machine's processors move
        /// while it measures, now near each other and now far
        #[arg(long)]
        least: bool,
        /// Only what was measured while a cache line's way took so many nanoseconds, before and after: where
        /// processors move, those who were near are compared with those who were near
        #[arg(long, value_name = "MIN..MAX", value_parser = options::way)]
        line_ns: Option<RangeInclusive<f64>>,
    },
}

#[derive(Args)]
pub(crate) struct Peers {
    /// How often everyone has a turn; the tables have medians over them
    #[arg(long, default_value_t = 3, value_parser = options::at_least_one)]
    rounds: u32,
    /// Numbers of ranks, each 2 at least
    #[arg(short = 'n', value_delimiter = ',', default_value = "2,4", value_parser = options::ranks)]
    ranks: Vec<u32>,
    /// Only these contenders
    #[arg(long, value_delimiter = ',', value_parser = options::contenders())]
    only: Vec<String>,
    /// Which collectives; else all four
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(options::OPS))]
    ops: Vec<String>,
    /// Which element types; else f32 and bf16
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(options::DTYPES))]
    dtypes: Vec<String>,
    /// Smallest and greatest size, both included, in bytes of a rank's input; else 8..67108864
    #[arg(long, value_name = "MIN..MAX", value_parser = options::sizes)]
    sizes: Option<String>,
    /// How long the timed calls of a cell take together; else 60 ms
    #[arg(long, value_name = "MS", value_parser = options::milliseconds)]
    time_ms: Option<f64>,
    /// How long one contender's turn may take, in seconds
    #[arg(long, default_value_t = 900, value_parser = options::at_least_one)]
    timeout: u32,
    /// Where the peers are, or are put; else PEERS_DIR, else target/peers
    #[arg(long)]
    peers_dir: Option<PathBuf>,
    /// Where the raw data go, a folder that has none; else target/host-peers
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, bench: Bench) -> Result<()> {
    match bench {
        Bench::Peers(args) => {
            let target = target(root)?;
            let out = args.out.clone().unwrap_or_else(|| target.join("host-peers"));
            rounds::run(root, &target, &out, &args)?;
            print(&record::read(&out)?, false)
        }
        Bench::Report { dir, least, line_ns } => {
            let mut record = record::read(&dir)?;
            line_ns.map_or(Ok(()), |way| record.keep(&way))?;
            print(&record, least)
        }
    }
}

/// Where cargo builds; a relative path is the caller's.
fn target(root: &Path) -> Result<PathBuf> {
    let dir = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    std::path::absolute(&dir).with_context(|| format!("CARGO_TARGET_DIR {}", dir.display()))
}

fn print(record: &Record, least: bool) -> Result<()> {
    let (said, over): (_, report::Over) = match least {
        false => ("Medians over the rounds.", report::median),
        true => (
            "The least of the rounds, of everyone; the machine's terms are medians.",
            report::least,
        ),
    };
    let tables = report::tables(record, over);
    #[expect(clippy::print_stdout, reason = "a program")]
    {
        print!("{said}\n{tables}");
    }
    Ok(())
}
