//! `crossover diagnose`: what is the matter with a job that hangs, or hung, told from the rings that
//! its ranks wrote. It reads, and changes nothing.

mod dump;
mod export;
mod rings;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crossover_recorder::{Diagnosis, Found, Life, analyse, analyse_twice, text};
use serde::Serialize;

use crate::failure::Failure;
use crate::out::Out;
use rings::Rings;

/// Say what is the matter with a job, from what its ranks did last
///
/// A job that lives is looked at twice, a second apart: what moved in between does not hang.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// A folder of rings (a dump, dumps of several nodes, /dev/shm), or the name of a job that has
    /// rings on this node
    #[arg(value_name = "DIR|JOB")]
    target: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a picture, the last calls of each rank, as an HTML page
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Write trace events for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    chrome_trace: Option<PathBuf>,
    /// Write a file a rank for PyTorch's flight-recorder analyser into a new folder
    #[arg(long, value_name = "DIR")]
    flight_recorder: Option<PathBuf>,
}

const EXIT_CODES: &str = "Exit codes: 0 nothing wrong was found, 1 something was, 2 bad usage, or \
                          no rings.";

/// Between two looks at a job that lives.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// A shorter wait in a job that lives is none yet: a prefill or a compilation takes as long. The
/// watchdog has the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// All that was found out.
#[derive(Serialize)]
struct Report {
    jobs: Vec<Diagnosis>,
    /// Rings that could not be read, and why.
    notes: Vec<String>,
}

/// Ends with 1 if something is wrong.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let rings = Rings::named(&args.target)?;
    let before = rings.look()?;
    let (jobs, found) = if before.images.iter().any(|image| lives(image.life)) {
        std::thread::sleep(BETWEEN_LOOKS);
        let after = rings.look()?;
        let jobs = analyse_twice(&before.images, &after.images);
        (jobs.into_iter().map(|job| job.patient(PATIENCE)).collect(), after)
    } else {
        (analyse(&before.images), before)
    };
    let Found { images, notes, .. } = found;
    let report = Report { jobs, notes };
    export::write(args, &images, &report.jobs)?;
    if args.json {
        Out::new().json(&report)?
    } else {
        tell(&report)?
    }
    let is_well = report.jobs.iter().all(|job| job.verdicts.is_empty());
    if is_well { Ok(()) } else { Err(Failure::silent(1)) }
}

fn lives(life: Life) -> bool {
    matches!(life, Life::Running | Life::Stopped)
}

fn tell(report: &Report) -> Result<(), Failure> {
    let mut out = Out::new();
    for (nth, job) in report.jobs.iter().enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        write!(out, "{}", text(job))?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(out.flush()?)
}
