//! Ranks as copies of this process, where no launcher has started them.

use crossover_bootstrap::launcher::{Job, Output};

use super::mps::Daemon;
use super::place::Place;
use crate::failure::Failure;
use crate::{launch, out};

/// Runs this command line on so many ranks, of so many threads each. Rank 0's results are this
/// process's output.
pub(super) fn run(ranks: u32, threads: u32, place: &Place) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::usage(format!("this program cannot find its own file: {e}")))?;
    let arguments = std::env::args_os().skip(1);
    let mut job = Job::new(ranks, program, arguments).threads(threads);
    let daemon = daemon(place);
    for (name, value) in daemon.iter().flat_map(Daemon::variables) {
        job = job.variable(name, value);
    }
    launch::run_own(job.output(Output::RankZero))
}

/// For ranks that share a GPU. Without one they are slow, and still right.
fn daemon(place: &Place) -> Option<Daemon> {
    if !place.wants_daemon() {
        return None;
    }
    Daemon::unless_found().unwrap_or_else(|why| {
        out::note(&format!("perf: {why}"));
        None
    })
}
