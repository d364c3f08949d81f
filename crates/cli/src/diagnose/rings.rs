//! Where rings are looked for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crossover_policy::DumpFolder;
use crossover_recorder::{Found, in_folder, of_job, on_node, own_dumps};

use super::dump::{self, Dump};
use super::refused;
use crate::failure::Failure;
use crate::group::Formation;

/// What the user named.
pub(super) enum Rings {
    /// Folders that hold rings.
    In(Vec<PathBuf>),
    /// Those of a job of this node, some of which are in this folder.
    Of(String, PathBuf),
    /// The dumps that a job has left, and what is to be said of rings that others have by its name.
    Left(String, Vec<PathBuf>, Vec<String>),
}

/// What was found there.
#[derive(Default)]
pub(super) struct Looked {
    /// What was written when groups ended: it does not change any more.
    pub(super) dumps: Vec<Dump>,
    /// All other rings: those of jobs that live, or have just ended.
    pub(super) others: Found,
}

impl Rings {
    /// A folder that holds rings, or whose folders do; else a job, which may have ended and left dumps.
    pub(super) fn named(target: &str) -> Result<Rings, Failure> {
        let folder = Path::new(target);
        if folder.is_dir() {
            let folders = with_rings(folder)?;
            if !folders.is_empty() {
                return Ok(Rings::In(folders));
            }
        }
        let settings = Formation::from_env(&[])?.settings()?;
        let dumps = folder_of(&settings.recording.dumps);
        let kept = settings.recording.rings.unwrap_or_default();
        let Found { images, refused, .. } = on_node(&kept);
        let known: BTreeSet<String> = images.into_iter().map(|image| image.about.job).collect();
        if known.contains(target) {
            return Ok(Rings::Of(target.to_owned(), kept));
        }
        let left = dumps.iter().flat_map(|dumps| left(target, dumps)).collect::<Vec<_>>();
        let of_others: Vec<_> = refused.into_iter().filter(|ring| ring.is_of(target)).collect();
        let theirs = refused::in_words(&of_others);
        if !left.is_empty() {
            return Ok(Rings::Left(target.to_owned(), left, theirs));
        }
        if !theirs.is_empty() {
            return Err(Failure::usage(theirs.join("; ")));
        }
        let what = match folder.is_dir() {
            true => format!("no rings are in {target}, nor in the folders in it"),
            false => {
                let nor = dumps.map(|dumps| format!(", nor dumps in {}", dumps.display()));
                let nor = nor.unwrap_or_default();
                format!("`{target}` is no folder, and no job of that name has rings here{nor}")
            }
        };
        Err(Failure::usage(format!("{what}; {}", in_words(&known, &kept))))
    }

    /// Reads them all, as they are now.
    pub(super) fn look(&self) -> Result<Looked, Failure> {
        let mut looked = Looked::default();
        match self {
            Rings::In(folders) | Rings::Left(_, folders, _) => {
                if let Rings::Left(job, _, theirs) = self {
                    // First: of many notes the last are only counted.
                    looked.others.notes.extend_from_slice(theirs);
                    looked.others.notes.push(of_dumps(job, folders, !theirs.is_empty()));
                }
                for folder in folders {
                    let mut found = in_folder(folder).map_err(|e| unreadable(folder, &e))?;
                    let dump = dump::take(folder, &mut found);
                    looked.others.images.extend(found.images);
                    looked.others.notes.extend(refused::in_words(&found.refused));
                    looked.others.notes.extend(found.notes);
                    looked.others.notes.extend(dump.notes.iter().cloned());
                    looked.dumps.push(dump);
                }
            }
            Rings::Of(job, kept) => {
                looked.others = of_job(job, kept);
                let refused = refused::in_words(&looked.others.refused);
                looked.others.notes.extend(refused);
            }
        }
        looked.dumps.retain(|dump| dump.verdict().is_some() || !dump.images.is_empty());
        let Found { images, notes, .. } = &looked.others;
        match looked.dumps.is_empty() && images.is_empty() {
            true if notes.is_empty() => {
                Err(Failure::usage("the rings are gone: the job has ended meanwhile"))
            }
            true => Err(Failure::usage(format!("no ring can be read: {}", few(notes).join("; ")))),
            false => Ok(looked),
        }
    }
}

/// This folder, or those in it: dumps of several groups or nodes are put beside one another.
fn with_rings(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let has_rings = |folder: &Path| {
        let is_found = |found: Found| {
            !found.images.is_empty() || !found.notes.is_empty() || !found.refused.is_empty()
        };
        in_folder(folder).map(|found| is_found(found) || dump::is_one(folder))
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

/// Where dumps go, if they go anywhere.
fn folder_of(dumps: &DumpFolder) -> Option<PathBuf> {
    match dumps {
        DumpFolder::None => None,
        DumpFolder::Temporary(folder) => Some(own_dumps(folder)),
        DumpFolder::In(folder) => Some(folder.clone()),
    }
}

/// The dumps of a job, in the folder where dumps go.
fn left(job: &str, dumps: &Path) -> Vec<PathBuf> {
    let mut left = with_rings(dumps).unwrap_or_default();
    left.retain(|folder| dump::is_of(folder, job));
    left
}

fn of_dumps(job: &str, folders: &[PathBuf], have_others: bool) -> String {
    let paths: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let whose = if have_others { "this user's " } else { "" };
    let left = few(&paths).join(", ");
    format!("{whose}`{job}` has no rings any more; this is what it left: {left}")
}

/// Many are bad for the same reason: the first few show it.
pub(super) fn few(notes: &[String]) -> Vec<String> {
    let mut told: Vec<String> = notes.iter().take(FEW).cloned().collect();
    if notes.len() > FEW {
        told.push(format!("and {} more like these", notes.len() - FEW));
    }
    told
}

const FEW: usize = 4;

fn unreadable(folder: &Path, error: &std::io::Error) -> Failure {
    let whose = match error.kind() {
        std::io::ErrorKind::PermissionDenied => refused::folder(folder),
        _ => None,
    };
    let whose = whose.map(|whose| format!("; {whose}")).unwrap_or_default();
    Failure::usage(format!("{} cannot be read: {error}{whose}", folder.display()))
}

fn in_words(jobs: &BTreeSet<String>, kept: &Path) -> String {
    if jobs.is_empty() {
        let place = match kept.as_os_str().is_empty() {
            true => String::new(),
            false => format!("{} has none, and neither has ", kept.display()),
        };
        return format!(
            "no job has rings on this node ({place}any process of this user); of a job that has ended, or \
             is another user's, and had a record_dir of its own, name that folder"
        );
    }
    let jobs: Vec<String> = jobs.iter().map(|job| format!("`{job}`")).collect();
    format!("jobs that have rings on this node: {}", jobs.join(", "))
}
