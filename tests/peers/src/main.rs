//! `peers`: measures one contender on this rank of a job; rank 0 prints a line of JSON for each cell.
//!
//! `cargo xtask bench peers` starts it for every contender. By hand, two ranks of this project:
//!
//! ```text
//! cargo build --release -p crossover-cli -p crossover-peers
//! PEERS_PAGE=/dev/shm/peers target/release/crossover launch -n 2 --bind none -- \
//!     target/release/peers crossover --ops all_reduce --dtypes f32 --sizes 8..1048576
//! ```

#![expect(clippy::print_stdout, reason = "a program")]

mod bare;
mod call;
mod contender;
mod data;
mod floor;
mod measure;
mod memory;
mod page;
#[cfg(test)]
mod tests;
mod wait;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum as _};
use serde_json::json;

use crate::bare::Bare;
use crate::call::{Cell, Dtype, Op};
use crate::contender::{Contender, Crossover, Library, place};
use crate::measure::{Measured, measure};
use crate::page::{Page, Seat};
use crate::wait::{Wait, allowed, bind};

/// The variable with the name of the file that the ranks share: in /dev/shm, and new for each run.
const PAGE: &str = "PEERS_PAGE";

/// No contender: the terms of the least times.
const FLOOR: &str = "floor";

/// Input bytes of a rank.
const SIZES: [usize; 12] = [
    8,
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
    64 << 20,
];

/// Measure collectives on this rank of a job
#[derive(Parser)]
struct Args {
    /// `crossover`, `bare` (shared memory without a library), an adapter's shared object, or `floor`:
    /// what the machine allows
    contender: String,
    /// What the contender is called in the output; else as it was given
    #[arg(long)]
    name: Option<String>,
    /// Which collectives
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Op::value_variants().iter().copied())]
    ops: Vec<Op>,
    /// Which element types
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Dtype::value_variants().iter().copied())]
    dtypes: Vec<Dtype>,
    /// Smallest and greatest size, in bytes of a rank's input
    #[arg(long, value_name = "MIN..MAX", value_parser = sizes, default_value = "8..67108864")]
    sizes: RangeInclusive<usize>,
    /// How long the timed calls of a cell take together
    #[arg(long, value_name = "MS", default_value_t = 60.0)]
    time_ms: f64,
}

fn sizes(text: &str) -> Result<RangeInclusive<usize>> {
    let (min, max) = text.split_once("..").context("write MIN..MAX, in bytes")?;
    Ok(min.parse()?..=max.parse()?)
}

fn main() -> Result<()> {
    let args = Args::parse();
    let processors = allowed()?;
    let path = std::env::var_os(PAGE)
        .with_context(|| format!("{PAGE} must name a new file, the same on all ranks"))?;
    let path = PathBuf::from(path);
    let page = Page::open(&path)?;
    let mut contender: Box<dyn Contender> = match args.contender.as_str() {
        "crossover" => Box::new(Crossover::form()?),
        "bare" | FLOOR => Box::new(Bare::new(&page, place()?, processors.len())),
        adapter => Box::new(Library::load(adapter.as_ref())?),
    };
    let (rank, world) = (contender.rank(), contender.world());
    let wait = Wait { crowded: world > processors.len() };
    let mut seat = Seat::new(&page, rank, world, wait)?;
    seat.settle(&path)?;
    // Now, and not before: what a library finds out about the machine it has found out.
    bind(rank, &processors)?;
    if args.contender == FLOOR {
        let sizes: Vec<usize> = sizes_of(&args).collect();
        return floor::measure(&mut seat, &sizes, |mut line| {
            if rank == 0 {
                line["ranks"] = world.into();
                line["processors"] = processors.len().into();
                println!("{line}");
            }
        });
    }

    let mut all_right = true;
    for cell in cells(&args, world) {
        let measured = measure(&mut *contender, &mut seat, &cell, args.time_ms)?;
        all_right &= measured.right;
        if rank == 0 {
            print(args.name.as_ref().unwrap_or(&args.contender), &cell, &measured);
        }
    }
    seat.barrier();
    contender.finish()?;
    ensure!(all_right, "{}: a result is wrong", args.contender);
    Ok(())
}

fn sizes_of(args: &Args) -> impl Iterator<Item = usize> {
    SIZES.into_iter().filter(|bytes| args.sizes.contains(bytes))
}

fn cells(args: &Args, world: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &op in &args.ops {
        for &dtype in &args.dtypes {
            cells.extend(sizes_of(args).map(|bytes| Cell { op, dtype, world, bytes }));
        }
    }
    cells
}

fn print(name: &str, cell: &Cell, measured: &Measured) {
    let line = json!({
        "contender": name,
        "op": cell.op.name(),
        "dtype": cell.dtype.name(),
        "ranks": cell.world,
        "bytes": cell.bytes,
        "count": cell.input(),
        "p50_us": micro(measured.p50),
        "p90_us": micro(measured.p90),
        "b2b_us": micro(measured.back_to_back),
        "line_ns": measured.line,
        "calls": measured.calls,
        "check": if measured.right { "ok" } else { "WRONG" },
    });
    println!("{line}");
}

/// To the nanosecond.
fn micro(microseconds: f64) -> f64 {
    (microseconds * 1e3).round() / 1e3
}
