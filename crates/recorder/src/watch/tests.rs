use std::ffi::c_int;
use std::path::Path;
use std::time::Instant;

use crossover_core::communicator::Communicator;
use crossover_core::contract::Contract;
use crossover_core::facts::{Caps, HOST_ARCH, RankReport, Topology};
use crossover_core::policy::Policy;
use crossover_core::registry::Registry;
use crossover_core::settings::GroupSettings;
use tempfile::TempDir;

use super::*;
use crate::image::Phase;
use crate::life::FORKING;

unsafe extern "C" {
    /// Of the C library.
    fn fork() -> c_int;
    /// Of the C library.
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    /// Of the C library.
    fn exit(status: c_int) -> !;
    /// Of the C library.
    fn kill(process: c_int, signal: c_int) -> c_int;
}

/// `WNOHANG` and `SIGKILL` of Linux.
const NO_HANG: c_int = 1;
const KILL: c_int = 9;

#[test]
fn a_forked_child_watches_its_own_groups_and_leaves_them_when_it_ends() {
    let _alone = FORKING.lock().expect("no such test panics");
    let (own, childs) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let aborts = aborts();
    let recorder = watched(own.path(), &aborts);
    // As the watchdog does, when somebody forks: in the child nobody gives this back.
    let looking = lock();
    // SAFETY: the child forms a group as any process may, and ends.
    let child = unsafe { fork() };
    if child == 0 {
        let _left_to_the_end_of_the_process = watched(childs.path(), &aborts);
        let is_named =
            std::fs::read_dir(childs.path()).is_ok_and(|mut names| names.next().is_some());
        let is_alone = lock().groups.len() == 1;
        // SAFETY: it may be called at any time.
        unsafe { exit(if is_named && is_alone { 0 } else { 1 }) };
    }
    assert_eq!(
        ended(child),
        Some(0),
        "it waits for what its parent holds, or has its parent's groups"
    );
    drop(looking);
    let left = std::fs::read_dir(childs.path()).expect("a folder").count();
    assert_eq!(left, 0, "the child's ring was left behind");
    assert_eq!(recorder.ring().phase(), Phase::Open, "the child left its parent's group");
    assert!(recorder.ring().path().exists(), "the child took its parent's ring away");
}

fn watched(folder: &Path, aborts: &AbortHandle) -> Arc<GroupRecorder> {
    let recorder = Arc::new(GroupRecorder::sample(folder));
    add(&recorder, aborts.clone(), &[]);
    recorder
}

/// Those of a group that has nothing to abort.
fn aborts() -> AbortHandle {
    let channel = crossover_bootstrap::threads(1, Duration::from_secs(1)).remove(0);
    let report = RankReport {
        label: "h:0".to_owned(),
        node: "n".to_owned(),
        arch: HOST_ARCH.to_owned(),
        device: "a processor".to_owned(),
        unit: String::new(),
        topology: Topology::Host,
        caps: Caps::NONE,
        caches: Default::default(),
    };
    let policy = Policy::new(Contract::DEFAULT, Vec::new());
    let settings = GroupSettings::default();
    Communicator::form(&channel, &Registry::empty(), &policy, report, &settings)
        .expect("a group of one needs nothing")
        .abort_handle()
}

/// How it ended, by itself: `None` if it did not.
fn ended(child: c_int) -> Option<c_int> {
    let (begun, mut status) = (Instant::now(), -1);
    while begun.elapsed() < Duration::from_secs(30) {
        // SAFETY: a place for the answer.
        if unsafe { waitpid(child, &raw mut status, NO_HANG) } == child {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: a child of this test, which nobody has waited for.
    unsafe { kill(child, KILL) };
    // SAFETY: as above.
    unsafe { waitpid(child, &raw mut status, 0) };
    None
}
