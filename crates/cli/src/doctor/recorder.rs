//! Where flight recorders keep their rings: is there room, and has anybody left some?

use std::path::Path;

use crossover_policy::Settings;
use crossover_recorder::{BYTES, Life};
use rustix::fs::statvfs;

use super::dumps;
use super::finding::Finding;

/// Of a node that is full of devices.
const USUAL_RANKS: u32 = 8;

/// `ranks` of this node are what a dump has to have room for; one that no launcher started is asked for a
/// node's usual number.
pub(super) fn examine(settings: Option<&Settings>, ranks: Option<u32>) -> Vec<Finding> {
    let Some(recording) = settings.map(|settings| &settings.recording) else { return Vec::new() };
    let mut findings = match &recording.rings {
        Some(folder) => of_folder(folder),
        None => {
            vec![Finding::ok("recorder", "rings are in memory without names: record_dir is memfd")]
        }
    };
    findings.extend(dumps::examine(&recording.dumps, ranks.unwrap_or(USUAL_RANKS)));
    findings
}

fn of_folder(folder: &Path) -> Vec<Finding> {
    let path = folder.display();
    let found = match crossover_recorder::in_folder(folder) {
        Ok(found) => found,
        Err(e) => {
            let advice = "set CROSSOVER_RECORD_DIR to a writable tmpfs, or to memfd";
            return vec![Finding::warn("recorder", format!("{path} cannot be read: {e}"), advice)];
        }
    };
    let mut findings = Vec::new();
    let free = statvfs(folder).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    findings.push(match free.map(|free| free / BYTES as u64) {
        Ok(0) => Finding::warn(
            "recorder",
            format!("{path} has no room for a ring of {BYTES} B: rings will have no names"),
            "give it room, or set CROSSOVER_RECORD_DIR to a writable tmpfs",
        ),
        Ok(rings) => Finding::ok(
            "recorder",
            format!("{path} has room for {rings} rings, one a rank and group"),
        ),
        Err(e) => Finding::ok(
            "recorder",
            format!("{path}: its file system cannot be asked for room: {e}"),
        ),
    });
    let gone = found.images.iter().filter(|image| image.life == Life::Gone);
    let mut jobs: Vec<&str> = gone.map(|image| image.about.job.as_str()).collect();
    let count = jobs.len();
    jobs.sort_unstable();
    jobs.dedup();
    if count > 0 {
        findings.push(Finding::warn(
            "rings",
            format!("{path} has {count} rings of ranks that ended without a goodbye, of job {}", jobs.join(", ")),
            format!("`crossover diagnose {path}` says why they ended; an hour later the next group takes them away"),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    #[test]
    fn a_folder_that_is_not_there_is_told_and_an_empty_one_has_room() {
        let [found] = &of_folder(Path::new("/nonexistent"))[..] else { panic!("one finding") };
        assert_eq!(found.verdict, Verdict::Warn, "{found:?}");
        let folder = tempfile::tempdir().expect("a folder");
        let [found] = &of_folder(folder.path())[..] else { panic!("one finding") };
        assert!(found.verdict == Verdict::Ok && found.found.contains("has room for"), "{found:?}");
    }
}
