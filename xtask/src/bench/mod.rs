//! `cargo xtask bench`: this project beside other libraries of collectives, on this machine.

mod floor;
mod install;
mod peer;
mod record;
mod report;
mod rounds;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Install what can be had of the peers, measure all in turns, and print the tables
    Peers(Peers),
    /// Print the tables of a measurement again
    Report {
        /// Where `bench peers` wrote
        dir: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct Peers {
    /// How often everyone has a turn; the tables have medians over them
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Numbers of ranks
    #[arg(short = 'n', value_delimiter = ',', default_value = "2,4")]
    ranks: Vec<u32>,
    /// Only these contenders
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Which collectives; else all four
    #[arg(long)]
    ops: Option<String>,
    /// Which element types; else f32 and bf16
    #[arg(long)]
    dtypes: Option<String>,
    /// Smallest and greatest size, in bytes of a rank's input; else 8 B to 64 MiB
    #[arg(long, value_name = "MIN..MAX")]
    sizes: Option<String>,
    /// How long the timed calls of a cell take together; else 60 ms
    #[arg(long, value_name = "MS")]
    time_ms: Option<f64>,
    /// How long one contender's turn may take, in seconds
    #[arg(long, default_value_t = 900)]
    timeout: u32,
    /// Where the peers are, or are put; else PEERS_DIR, else target/peers
    #[arg(long)]
    peers_dir: Option<PathBuf>,
    /// Where the raw data go
    #[arg(long, default_value = "docs/measurements/host-peers")]
    out: PathBuf,
}

pub(crate) fn run(root: &Path, bench: Bench) -> Result<()> {
    match bench {
        Bench::Peers(args) => {
            rounds::run(root, &args)?;
            print(&args.out)
        }
        Bench::Report { dir } => print(&dir),
    }
}

fn print(dir: &Path) -> Result<()> {
    let tables = report::tables(&record::read(dir)?);
    #[expect(clippy::print_stdout, reason = "a program")]
    {
        print!("{tables}");
    }
    Ok(())
}
