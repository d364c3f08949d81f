//! Where dumps go: can one be written, and has anybody left some?

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crossover_policy::DumpFolder;
use crossover_recorder::BYTES;
use rustix::fs::{Access, statvfs};

use super::finding::{Finding, mebibytes};

/// Beside its rings a dump has a picture, of about their size.
const RINGS_AND_PICTURE: u64 = 2;

const ADVICE: &str =
    "set CROSSOVER_DUMP_DIR to a folder where this user can write and that has room, or to none";

pub(super) fn examine(dumps: &DumpFolder, ranks: u32) -> Vec<Finding> {
    let (folder, place) = match dumps {
        DumpFolder::None => {
            return vec![Finding::ok("dumps", "none are written: dump_dir is none")];
        }
        DumpFolder::In(folder) => (folder.clone(), place(folder)),
        DumpFolder::Temporary(folder) => {
            let own = crossover_recorder::own_dumps(folder);
            let place = own_place(&own);
            (own, place)
        }
    };
    let need = BYTES as u64 * u64::from(ranks) * RINGS_AND_PICTURE;
    let mut findings = vec![match place.and_then(|place| room(place, need)) {
        Ok(found) => Finding::ok("dumps", format!("dumps go to {}: {found}", folder.display())),
        Err(why) => {
            let found = format!("no dump can be written to {}: {why}", folder.display());
            Finding::warn("dumps", found, ADVICE)
        }
    }];
    findings.extend(newest(&folder));
    findings
}

/// The folder, or the one in which it and its parents will be made.
fn place(folder: &Path) -> Result<Place, String> {
    for there in folder.ancestors() {
        if there.as_os_str().is_empty() {
            break;
        }
        match fs::metadata(there) {
            Ok(meta) if meta.is_dir() => {
                return Ok(Place { there: there.to_owned(), is_it: there == folder });
            }
            Ok(_) => return Err(format!("{} is no folder", there.display())),
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {e}", there.display()));
            }
            // No folder can be made in a link's place, nor by way of it.
            Err(_) if there.is_symlink() => {
                return Err(format!("{} is a link to what is not there", there.display()));
            }
            Err(_) => {}
        }
    }
    // The path is a relative one, and none of it is there.
    match std::env::current_dir() {
        Ok(there) => Ok(Place { there, is_it: false }),
        Err(_) => Err("it is no absolute path, and this folder is gone".to_owned()),
    }
}

/// A folder of this user's in the one for temporary files, which ranks do not make.
fn own_place(own: &Path) -> Result<Place, String> {
    let parent = own.parent().unwrap_or(own);
    match fs::symlink_metadata(own) {
        Ok(meta) if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() => {
            Err("it is not a folder of this user's".to_owned())
        }
        Err(_) if !parent.is_dir() => Err(format!("{} is no folder", parent.display())),
        _ => place(own),
    }
}

struct Place {
    there: PathBuf,
    is_it: bool,
}

/// That there is room for a dump.
fn room(Place { there, is_it }: Place, need: u64) -> Result<String, String> {
    let how = Access::WRITE_OK | Access::EXEC_OK;
    let path = there.display();
    rustix::fs::access(&there, how).map_err(|e| format!("{path} cannot be written to: {e}"))?;
    let free = statvfs(&there).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    let free =
        free.map_err(|e| format!("{path}: its file system cannot be asked for room: {e}"))?;
    if free < need {
        let (free, need) = (mebibytes(free), mebibytes(need));
        return Err(format!("{path} has {free} free, and one takes about {need}"));
    }
    Ok(match is_it {
        true => format!("writable, {} free", mebibytes(free)),
        false => format!("to be made in {path}, {} free", mebibytes(free)),
    })
}

/// Dumps that are there to be read.
fn newest(folder: &Path) -> Option<Finding> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with("crossover."));
    let newest =
        named.max_by_key(|entry| entry.metadata().and_then(|meta| meta.modified()).ok())?;
    Some(Finding::hint(
        "dumps",
        format!("{} has dumps of groups that ended badly", folder.display()),
        format!("`crossover diagnose {}` reads the last one", newest.path().display()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    fn told(folder: &Path, ranks: u32) -> (Verdict, String) {
        let found = examine(&DumpFolder::In(folder.to_owned()), ranks).remove(0);
        (found.verdict, found.found)
    }

    #[test]
    fn a_folder_that_cannot_hold_a_dump_is_told_with_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let (verdict, found) = told(path, 8);
        assert!(verdict == Verdict::Ok && found.contains(": writable, "), "{found}");
        let (verdict, found) = told(&path.join("a/b"), 8);
        let made = format!("to be made in {}", path.display());
        assert!(verdict == Verdict::Ok && found.contains(&made), "{found}");
        let here = std::env::current_dir().expect("a test runs in its crate's folder");
        let (verdict, found) = told(Path::new("not/there"), 8);
        let made = format!("to be made in {}, ", here.display());
        assert!(verdict == Verdict::Ok && found.contains(&made), "{found}");
        fs::write(path.join("file"), "").expect("written");
        std::os::unix::fs::symlink("nowhere", path.join("link")).expect("a link");
        for (wrong, why) in [
            (path.join("link"), "link is a link to what is not there"),
            (path.join("link/dumps"), "link is a link to what is not there"),
            (path.join("file"), "file is no folder"),
            (path.join("file/dumps"), "file/dumps: Not a directory"),
            (PathBuf::from("/proc/1/dumps"), "/proc/1 cannot be written to: "),
        ] {
            let (verdict, found) = told(&wrong, 8);
            let head = format!("no dump can be written to {}: ", wrong.display());
            assert!(verdict == Verdict::Warn && found.starts_with(&head), "{found}");
            assert!(found.contains(why), "{found}");
        }
        let (verdict, found) = told(path, u32::MAX);
        assert!(verdict == Verdict::Warn && found.contains("free, and one takes about"), "{found}");
    }

    #[test]
    fn the_folder_that_nobody_chose_has_to_be_ones_own() {
        let temporary = tempfile::tempdir().expect("a folder");
        let told = || {
            let found = examine(&DumpFolder::Temporary(temporary.path().to_owned()), 2).remove(0);
            (found.verdict, found.found)
        };
        assert_eq!(told().0, Verdict::Ok);
        let own = crossover_recorder::own_dumps(temporary.path());
        std::os::unix::fs::symlink("/tmp", &own).expect("a link");
        let (verdict, found) = told();
        assert!(
            verdict == Verdict::Warn && found.contains("not a folder of this user's"),
            "{found}"
        );
        let nowhere = DumpFolder::Temporary(PathBuf::from("/nonexistent"));
        let found = examine(&nowhere, 2).remove(0).found;
        assert!(found.ends_with("/nonexistent is no folder"), "{found}");
    }

    #[test]
    fn dumps_that_are_there_are_told_of() {
        let folder = tempfile::tempdir().expect("a folder");
        let dumps = DumpFolder::In(folder.path().to_owned());
        assert_eq!(examine(&dumps, 2).len(), 1);
        fs::create_dir(folder.path().join("crossover.j.tp.1")).expect("a folder");
        let found = examine(&dumps, 2).pop().expect("one is there");
        assert!(found.advice.is_some_and(|advice| advice.contains("crossover.j.tp.1")));
        assert_eq!(examine(&DumpFolder::None, 2).len(), 1);
    }
}
