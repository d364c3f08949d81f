//! `crossover diagnose`: what is the matter with a job that hangs, or hung, told from the rings that
//! its ranks wrote. It reads, and changes nothing.

mod dump;
mod export;
mod failure;
mod refused;
mod rings;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crossover_recorder::{Diagnosis, Image, Life, analyse, analyse_twice, text};
use serde::Serialize;

use crate::failure::Failure;
use crate::out::Out;
use crate::perf::clock;
use dump::Dump;
use rings::{Looked, Rings, few};

/// Say what is the matter with a job, from what its ranks did last
///
/// A job that lives is looked at twice, a second apart: what moved in between does not hang. Of a dump
/// it says what was found when it was written.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// A folder of rings (a dump, dumps of several nodes, /dev/shm), or the name of a job that has
    /// rings on this node, or has left dumps where the setting dump_dir says
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

const EXIT_CODES: &str = "Exit codes: 0 nothing wrong was found, 1 something was, 2 bad usage, no \
                          rings, or an output that cannot be written.";

/// Between two looks at a job that lives.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// A shorter wait in a job that lives is none yet: a prefill or a compilation takes as long. The
/// watchdog has the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// All that was found out.
#[derive(Serialize)]
struct Report {
    jobs: Vec<Told>,
    /// Rings that could not be read, and why.
    notes: Vec<String>,
}

/// What is the matter with a job.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    diagnosis: Diagnosis,
    /// When the dump that tells it was written, in UTC; a job that is still there has none.
    written: Option<String>,
}

/// Ends with 1 if something is wrong.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let rings = Rings::named(&args.target)?;
    let Looked { mut dumps, others } = rings.look()?;
    let (mut jobs, mut images, mut notes) = (Vec::new(), Vec::new(), others.notes);
    for failure in failure::take(&mut dumps) {
        let written = Some(time(failure.at));
        jobs.push(Told { diagnosis: failure.diagnosis, written });
        images.extend(failure.images);
    }
    dumps.retain(|dump| !is_told(dump, &jobs));
    let (judged, copies) = without_verdict(dumps);
    jobs.extend(judged);
    images.extend(copies);
    let (judged, others) = if others.images.iter().any(|image| lives(image.life)) {
        std::thread::sleep(BETWEEN_LOOKS);
        let after = rings.look()?.others;
        let judged = analyse_twice(&others.images, &after.images);
        notes = after.notes;
        (judged.into_iter().map(|job| job.patient(PATIENCE)).collect(), after.images)
    } else {
        (analyse(&others.images), others.images)
    };
    jobs.extend(judged.into_iter().map(|diagnosis| Told { diagnosis, written: None }));
    images.extend(others);
    let report = Report { jobs, notes };
    export::write(args, &images, &report.jobs)?;
    let told = if args.json { Out::new().json(&report) } else { tell(&report) };
    // 1 is what a finding ends with.
    told.map_err(|e| Failure::usage(e.to_string()))?;
    let is_well = report.jobs.iter().all(|job| job.diagnosis.verdicts.is_empty());
    if is_well { Ok(()) } else { Err(Failure::silent(1)) }
}

/// Is it about a job of which another dump says what was the matter?
fn is_told(dump: &Dump, jobs: &[Told]) -> bool {
    let is_told = |job: &String| jobs.iter().any(|told| told.diagnosis.job == *job);
    dump.images.iter().all(|image| is_told(&image.about.job))
}

/// Dumps whose verdict is lost, or that had none: their rings are judged, as of when they were copied.
fn without_verdict(dumps: Vec<Dump>) -> (Vec<Told>, Vec<Image>) {
    let mut written: BTreeMap<String, Duration> = BTreeMap::new();
    let mut images = Vec::new();
    for dump in dumps {
        for image in &dump.images {
            let at = written.entry(image.about.job.clone()).or_default();
            *at = dump.at.max(*at);
        }
        images.extend(dump.images);
    }
    let told = |diagnosis: Diagnosis| {
        let written = written.get(&diagnosis.job).copied().map(time);
        Told { diagnosis, written }
    };
    (analyse(&images).into_iter().map(told).collect(), images)
}

fn time(since_epoch: Duration) -> String {
    format!("{} UTC", clock::text(since_epoch.as_secs()))
}

fn lives(life: Life) -> bool {
    matches!(life, Life::Running | Life::Stopped)
}

fn tell(report: &Report) -> Result<(), Failure> {
    let mut out = Out::new();
    for (nth, Told { diagnosis, written }) in report.jobs.iter().enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        let text = text(diagnosis);
        let (job, rest) = text.split_once('\n').unwrap_or((&text, ""));
        writeln!(out, "{job}")?;
        if let Some(written) = written {
            writeln!(out, "as it was when its dump was written, {written}")?;
        }
        write!(out, "{rest}")?;
    }
    for note in few(&report.notes) {
        writeln!(out, "note: {note}")?;
    }
    Ok(out.flush()?)
}
