//! Where rings are looked for.

use std::fs;
use std::path::{Path, PathBuf};

use crossover_recorder::{Found, in_folder, jobs, of_job};

use super::dump;
use crate::failure::Failure;
use crate::group::Formation;

/// What the user named.
pub(super) enum Rings {
    /// Folders that hold rings.
    In(Vec<PathBuf>),
    /// Those of a job of this node, some of which are in this folder.
    Of(String, PathBuf),
}

impl Rings {
    /// A folder that holds rings, or whose folders do; else a job.
    pub(super) fn named(target: &str) -> Result<Rings, Failure> {
        let folder = Path::new(target);
        if folder.is_dir() {
            let folders = with_rings(folder)?;
            if !folders.is_empty() {
                return Ok(Rings::In(folders));
            }
        }
        let settings = Formation::from_env(&[])?.settings()?;
        let kept = settings.recording.rings.unwrap_or_default();
        let known = jobs(&kept);
        if known.iter().any(|job| job == target) {
            return Ok(Rings::Of(target.to_owned(), kept));
        }
        let what = match folder.is_dir() {
            true => format!("no rings are in {target}, nor in the folders in it"),
            false => format!("`{target}` is no folder, and no job of that name has rings here"),
        };
        Err(Failure::usage(format!("{what}; {}", in_words(&known))))
    }

    /// Reads them all, as they are now.
    pub(super) fn look(&self) -> Result<Found, Failure> {
        let found = match self {
            Rings::In(folders) => {
                let mut all = Found::default();
                for folder in folders {
                    let found = in_folder(folder).map_err(|e| unreadable(folder, &e))?;
                    let Found { images, notes, .. } = dump::as_it_was(folder, found);
                    all.images.extend(images);
                    all.notes.extend(notes);
                }
                all
            }
            Rings::Of(job, kept) => of_job(job, kept),
        };
        match found.images.is_empty() {
            true if found.notes.is_empty() => {
                Err(Failure::usage("the rings are gone: the job has ended meanwhile"))
            }
            true => Err(Failure::usage(format!("no ring can be read: {}", found.notes.join("; ")))),
            false => Ok(found),
        }
    }
}

/// This folder, or those in it: dumps of several groups or nodes are put beside one another.
fn with_rings(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let has_rings = |folder: &Path| {
        in_folder(folder).map(|found| !found.images.is_empty() || !found.notes.is_empty())
    };
    if has_rings(folder).map_err(|e| unreadable(folder, &e))? {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = fs::read_dir(folder).map_err(|e| unreadable(folder, &e))?;
    let inside = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let mut inside: Vec<PathBuf> = inside.filter(|path| has_rings(path).unwrap_or(false)).collect();
    inside.sort();
    Ok(inside)
}

fn unreadable(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{} cannot be read: {error}", folder.display()))
}

fn in_words(jobs: &[String]) -> String {
    match jobs {
        [] => "no job has rings on this node".to_owned(),
        jobs => {
            let jobs: Vec<String> = jobs.iter().map(|job| format!("`{job}`")).collect();
            format!("jobs that have rings on this node: {}", jobs.join(", "))
        }
    }
}
