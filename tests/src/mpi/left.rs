//! What ranks of MPICH leave behind that were killed: files in memory, megabytes each, which only a
//! rank that ends well takes away.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where they are.
const FOLDER: &str = "/dev/shm";
/// How their names begin.
const NAMES: &str = "mpich_shm_";
/// How long ranks may take to end whose launcher was killed.
const ENDING: Duration = Duration::from_secs(2);

/// Takes away, when it is dropped, what has come since it was made and no process has open or mapped: what
/// jobs of others hold stays.
#[derive(Debug)]
pub(super) struct Sweep {
    before: BTreeSet<OsString>,
}

impl Sweep {
    /// Remembers what is there.
    pub(super) fn new() -> Sweep {
        Sweep { before: names().collect() }
    }

    fn new_ones(&self) -> Vec<PathBuf> {
        let mine = rustix::process::getuid().as_raw();
        let new = names().filter(|name| !self.before.contains(name));
        let paths = new.map(|name| Path::new(FOLDER).join(name));
        paths.filter(|path| path.metadata().is_ok_and(|file| file.uid() == mine)).collect()
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        let until = Instant::now() + ENDING;
        loop {
            let new = self.new_ones();
            if new.is_empty() {
                return;
            }
            let used = used();
            for path in new.iter().filter(|path| !used.contains(*path)) {
                // Another test's sweep may have been faster.
                let _ = std::fs::remove_file(path);
            }
            if Instant::now() > until {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn names() -> impl Iterator<Item = OsString> {
    let files = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    files.map(|file| file.file_name()).filter(|name| name.to_string_lossy().starts_with(NAMES))
}

/// Those that a process has open or mapped. A file is mapped before it is closed, so open ones are looked
/// for first: one that is seen in neither list was in use by nobody.
fn used() -> BTreeSet<PathBuf> {
    let mut used = BTreeSet::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        used.extend(open.filter_map(|fd| std::fs::read_link(fd.path()).ok()));
        let maps = std::fs::read_to_string(process.path().join("maps")).unwrap_or_default();
        let mapped = maps.lines().filter_map(|line| Some(&line[line.find(FOLDER)?..]));
        used.extend(mapped.map(PathBuf::from));
    }
    used
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn what_came_since_and_nobody_uses_is_taken_away() {
        let path = |what: &str| {
            Path::new(FOLDER).join(format!("{NAMES}test_{}_{what}", std::process::id()))
        };
        let [before, open, left] = ["before", "open", "left"].map(path);
        std::fs::write(&before, "1").expect("there is room");
        let sweep = Sweep::new();
        let held = File::create(&open).expect("there is room");
        std::fs::write(&left, "1").expect("there is room");
        drop(sweep);
        let there = [&before, &open, &left].map(|path| path.exists());
        drop(held);
        for path in [&before, &open] {
            std::fs::remove_file(path).expect("it is there");
        }
        assert_eq!(there, [true, true, false]);
    }
}
