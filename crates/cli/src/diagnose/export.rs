//! The files that options ask for.

use std::fs;
use std::io;
use std::path::Path;

use crossover_recorder::{Diagnosis, Image, chrome_trace, flight_recorder, timeline};

use super::{Args, Told};
use crate::failure::Failure;

/// Writes them. They are of one job: which one has to be clear.
pub(super) fn write(args: &Args, images: &[Image], jobs: &[Told]) -> Result<(), Failure> {
    let asked = [&args.timeline, &args.chrome_trace, &args.flight_recorder];
    if asked.iter().all(|path| path.is_none()) {
        return Ok(());
    }
    let [Told { diagnosis: job, .. }] = jobs else {
        let names: Vec<String> =
            jobs.iter().map(|job| format!("`{}`", job.diagnosis.job)).collect();
        let names = names.join(", ");
        return Err(Failure::usage(format!(
            "a file is written of one job, and the rings are of {names}: name the job instead of \
             the folder, or put its rings into a folder of their own"
        )));
    };
    let images: Vec<Image> = images.iter().filter(|image| is_of(job, image)).cloned().collect();
    if images.is_empty() {
        return Err(Failure::usage(format!("no ring of `{}` can be read to write of it", job.job)));
    }
    if let Some(path) = &args.timeline {
        file(path, timeline(&images, job).as_bytes())?;
    }
    if let Some(path) = &args.chrome_trace {
        file(path, chrome_trace(&images, job).as_bytes())?;
    }
    if let Some(folder) = &args.flight_recorder {
        ranks(folder, &images)?;
    }
    Ok(())
}

/// Was it judged? Stale rings are not.
fn is_of(job: &Diagnosis, image: &Image) -> bool {
    let about = &image.about;
    about.job == job.job && job.groups.iter().any(|group| group.group == about.group)
}

/// PyTorch's analyser takes every file of the folder for a rank's.
fn ranks(folder: &Path, images: &[Image]) -> Result<(), Failure> {
    match fs::create_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(without_a_parent(folder)),
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(unwritable(folder, &e)),
        _ => {}
    }
    let entries = fs::read_dir(folder).map_err(|e| unwritable(folder, &e))?;
    if entries.count() > 0 {
        return Err(Failure::usage(format!(
            "{} is not empty, and the analyser takes every file in it for a rank's: name a new one",
            folder.display()
        )));
    }
    for dump in flight_recorder(images).map_err(|e| unwritable(folder, &e))? {
        file(&folder.join(&dump.name), &dump.bytes)?;
    }
    Ok(())
}

fn file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|e| unwritable(path, &e))
}

/// What is mistyped must not vanish in folders of its own.
fn without_a_parent(folder: &Path) -> Failure {
    let parent = folder.parent().unwrap_or(folder);
    Failure::usage(format!(
        "{} cannot be made, since {} is not there: name a new folder in one that is",
        folder.display(),
        parent.display()
    ))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{} cannot be written: {error}", path.display()))
}
