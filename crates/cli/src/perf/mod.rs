//! `crossover perf`: how long collectives take, whether they are right, and who ran them.
//!
//! Without a launcher it starts the ranks itself, as copies of this process ([`spawn`]) or as its
//! threads ([`threads`]). Read in this order: [`case`] (one size), [`data`] (what is sent, what must arrive), [`slot`] (the buffers),
//! [`measure`] (right? how long?), [`device`] (the same there), [`floors`] (what nothing is faster than), [`mod@bench`] (all sizes, all contenders), [`row`], [`table`] and
//! [`json`] (what is printed).

mod about;
mod bench;
mod beside;
mod buffer;
mod case;
pub(crate) mod clock;
mod contender;
mod data;
mod device;
mod floors;
mod json;
mod measure;
mod mps;
mod place;
mod progress;
mod row;
mod sizes;
mod slot;
mod spawn;
mod stats;
mod table;
mod threads;

use std::path::PathBuf;

use clap::ValueEnum;
use crossover_core::call::{Dtype, Mode, Op, ReduceOp};

use crate::failure::Failure;
use crate::group::{Formation, Seat};
use crate::words::one_of;
use place::Place;

/// Measure a collective, checking every element of its result
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The collective
    #[arg(value_parser = one_of::<Op>(Op::NAMES))]
    op: Op,
    /// Number of ranks, each started here [default: 2, or the launcher's]
    #[arg(short = 'n', value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// The least size, such as 8, 32K or 16M (binary); a size is rounded down to whole elements for
    /// all ranks
    #[arg(short = 'b', value_name = "SIZE", default_value = "8", value_parser = sizes::parse)]
    first: u64,
    /// The greatest size
    #[arg(short = 'e', value_name = "SIZE", default_value = "16M", value_parser = sizes::parse)]
    last: u64,
    /// Each size is so many times the one before
    #[arg(short = 'f', value_name = "FACTOR", default_value_t = 2,
          value_parser = clap::value_parser!(u64).range(2..))]
    factor: u64,
    /// Element type
    #[arg(short = 'd', default_value = "bf16", value_parser = one_of::<Dtype>(Dtype::NAMES))]
    dtype: Dtype,
    /// How contributions are combined
    #[arg(short = 'o', default_value = "sum", value_parser = one_of::<ReduceOp>(ReduceOp::NAMES))]
    reduce_op: ReduceOp,
    /// Timed iterations of each size: calls, or on a device batches of calls [default: what fits
    /// into 0.15 s, at least 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iters: Option<u32>,
    /// Whether calls run now or are recorded into a device graph
    #[arg(long, default_value = "eager", value_parser = one_of::<Mode>(Mode::NAMES))]
    mode: Mode,
    /// Where the data is; `auto` is as the settings have it, or else on CUDA devices, or HIP's, if
    /// there are enough and kernels for them, and in host memory otherwise
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    device: Where,
    /// So many ranks share a device, the first ones the first device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_gpu: Option<u32>,
    /// Ranks are threads of one process, each with a stream of its own: on a shared GPU they need no
    /// daemon. Otherwise each is a process
    #[arg(long)]
    one_process: bool,
    /// `auto` leaves the choice to the policy, `all` measures each target that takes the call, and
    /// a backend or an algorithm is forced
    #[arg(long = "use", value_name = "auto|all|ID[/ALGO]", default_value = "auto")]
    target: String,
    /// A policy file of the user layer; a later one is stronger
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// Print JSON alone on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Where {
    Auto,
    Host,
    Cuda,
    Hip,
}

/// Without a launcher and without `-n`.
const DEFAULT_RANKS: u32 = 2;

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let sizes = args.sizes()?;
    let unplaced = Formation::from_env(&args.policy)?;
    let (place, formation) = Place::resolve(args, unplaced.clone())?;
    match formation.seat() {
        Some(seat) => {
            args.refuse_other_world(seat)?;
            args.refuse_started_processes(seat)?;
            bench::run(args, &formation, &place, &sizes)
        }
        None => {
            // What is wrong with policies is said here, once, and not by each rank.
            formation.policy(args.forced())?;
            match args.ranks.unwrap_or(DEFAULT_RANKS) {
                1 => bench::run(args, &formation, &place, &sizes),
                ranks if args.one_process => threads::run(args, ranks, &unplaced, &place, &sizes),
                ranks => spawn::run(ranks, formation.threads(), &place),
            }
        }
    }
}

impl Args {
    fn sizes(&self) -> Result<Vec<u64>, Failure> {
        let Args { first, last, factor, .. } = *self;
        if first > last {
            return Err(Failure::usage(format!("no size is from -b {first} B to -e {last} B")));
        }
        Ok(sizes::steps(first, last, factor))
    }

    fn refuse_other_world(&self, Seat { rank, world }: Seat) -> Result<(), Failure> {
        match self.ranks {
            Some(ranks) if ranks != world && rank == 0 => Err(Failure::usage(format!(
                "-n asks for {ranks} ranks, but the launcher started {world}: leave -n out, or \
                 make them equal"
            ))),
            Some(ranks) if ranks != world => Err(Failure::silent(2)),
            _ => Ok(()),
        }
    }

    fn refuse_started_processes(&self, Seat { rank, .. }: Seat) -> Result<(), Failure> {
        match (self.one_process, rank) {
            (false, _) => Ok(()),
            (true, 0) => Err(Failure::usage(
                "--one-process starts its ranks itself, and a launcher has started this one: leave \
                 out one of the two",
            )),
            (true, _) => Err(Failure::silent(2)),
        }
    }

    /// The backend or algorithm that `--use` forces.
    fn forced(&self) -> Option<&str> {
        match self.target.as_str() {
            "auto" | "all" => None,
            target => Some(target),
        }
    }
}

/// What tests of this module share.
#[cfg(test)]
mod support {
    use std::sync::{Arc, OnceLock};

    use clap::Parser as _;
    use crossover_kernel_emulation::driver::{Emulated, Options};

    use super::Args;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// What is written behind `perf`.
    pub(super) fn args(words: &[&str]) -> Args {
        Line::parse_from([&["perf"], words].concat()).args
    }

    /// Makes the processor two devices of the driver `emulated`, the same ones for all tests of a
    /// process.
    pub(super) fn emulate() -> &'static Arc<Emulated> {
        static INSTALLED: OnceLock<Arc<Emulated>> = OnceLock::new();
        INSTALLED.get_or_init(|| {
            // So little is copied in no time where every access is emulated.
            let options = Options { devices: 2, l2: 16 << 10, ..Options::default() };
            let driver = Emulated::new(options);
            crossover_device::install("emulated", Arc::clone(&driver) as _);
            driver
        })
    }
}
