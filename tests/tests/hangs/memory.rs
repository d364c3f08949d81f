//! Where rings are: no folder, one without room or one that cannot be written takes nothing away from
//! what is found; and who is killed leaves no ring behind for good.

use std::path::Path;
use std::process::Command;

use crossover::recorder::{Life, in_folder, of_job, sweep};
use tempfile::TempDir;

use super::job::{engines, files, skip};

/// A rank is killed while its peers wait, with rings in `folder`: the same is found as elsewhere, before
/// and after.
#[track_caller]
fn is_found_in(folder: &str) {
    // Time to look around from outside, as an operator does.
    let faults = "rank=0,step=5,at=attn,delay=2500 rank=2,step=5,at=attn,kill,after=2000";
    let mut job = engines(3, faults).set("record_dir", folder).start();
    job.ready();
    let found = of_job(&job.name, Path::new(folder));
    let ranks: Vec<u32> = found.images.iter().map(|image| image.about.rank).collect();
    let mut sorted = ranks.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2], "{:?}", found.notes);
    let ended = job.end();
    ended.codes(4, &[2]).verdict("crashed_rank", &[2]);
    assert!(files(Path::new(folder)).iter().all(|path| !is_ring(path)));
    let is_told = ended.warnings() > 0;
    assert_eq!(is_told, folder != "memfd", "{ended:#?}");
    if is_told {
        assert!(ended.ends[1].stderr.contains("in memory without a name"), "{ended:#?}");
    }
}

fn is_ring(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("crossover."))
}

#[test]
fn memory_without_names() {
    is_found_in("memfd");
}

#[test]
fn a_folder_that_nobody_can_write() {
    is_found_in("/proc");
}

#[test]
fn a_folder_without_room() {
    let mount = TempDir::new().expect("a folder");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=200k", "tmpfs"])
        .arg(mount.path())
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        return skip("this test mounts a tmpfs, which needs root");
    }
    let outcome = std::panic::catch_unwind(|| is_found_in(&mount.path().display().to_string()));
    let _ = Command::new("umount").arg(mount.path()).status();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn rings_of_ranks_that_were_all_killed_are_swept() {
    let mut job = engines(3, "rank=1,step=5,at=attn,delay=20000").start();
    job.ready();
    let name = job.name.clone();
    let folder = job.kill();
    let rings = folder.path().join("rings");
    let found = in_folder(&rings).expect("the folder is there");
    assert_eq!(found.images.len(), 3, "{:?}", found.notes);
    assert!(found.images.iter().all(|image| image.life == Life::Gone));
    sweep("another-job", &rings);
    assert_eq!(files(&rings).len(), 3);
    sweep(&name, &rings);
    assert_eq!(files(&rings).len(), 0);
}
