//! Ranks as copies of this process, where no launcher has started them.

use crossover_bootstrap::launcher::{Job, Output};

use crate::failure::Failure;
use crate::launch;

/// Runs this command line on so many ranks, of so many threads each. Rank 0's results are this process's output.
pub(super) fn run(ranks: u32, threads: u32) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::usage(format!("this program cannot find its own file: {e}")))?;
    let arguments = std::env::args_os().skip(1);
    let job = Job::new(ranks, program, arguments).threads(threads);
    launch::run_own(job.output(Output::RankZero))
}
