//! One rank's recorder: what its communicator tells it goes into its ring; its peers' rings are open, so
//! that whoever is left can say what happened.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use crossover_bootstrap::Launch;
use crossover_core::agreement::gather;
use crossover_core::backend::EnqueueError;
use crossover_core::bootstrap::{Bootstrap, BootstrapError};
use crossover_core::communicator::Communicator;
use crossover_core::record::{Entry, Recorder};
use crossover_core::settings::OnHang;

use crate::about::{About, Process};
use crate::analyse::analyse;
use crate::diagnosis::Class;
use crate::dump::{self, Cause};
use crate::image::{Image, Life, Phase};
use crate::reader::Reader;
use crate::ring::Ring;
use crate::{find, watch};

/// How long a rank that knows the group's end lets others come to the call that ended it.
const PATIENCE: Duration = Duration::from_secs(1);

/// What an operator can set.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder where rings are, which is in memory; `None` for memory without names.
    pub rings: Option<PathBuf>,
    /// Where dumps go.
    pub dumps: Dumps,
    /// What is done where a rank is awaited for longer than `hang_after`, is gone, or has another
    /// history than its peers.
    pub on_hang: OnHang,
    /// How long a rank is awaited before that is said; `None` for 50 times what is usual, and 2 s at
    /// least; half of `hang_after` at most.
    pub warn_after: Option<Duration>,
    /// How long a rank is awaited at most.
    pub hang_after: Duration,
}

/// Where dumps go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dumps {
    /// Nowhere.
    None,
    /// A folder of this user's, in this one for temporary files; the oldest are removed.
    Temporary(PathBuf),
    /// This one.
    In(PathBuf),
}

/// Which job and process a group's rank belongs to: what its communicator does not know.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name and attempt, and whether its launcher ends it.
    pub launch: Launch,
    /// Where the rank's data is.
    pub device: String,
    /// Digest of the linked backends.
    pub backends: String,
}

/// Records what one rank of a group does. It is watched until it is dropped.
pub struct GroupRecorder {
    ring: Ring,
    /// By rank, the own one too. `None` where a rank's ring cannot be seen from here.
    rings: Vec<Option<Reader>>,
    options: Options,
    launch: Launch,
    is_well: AtomicBool,
    trouble: Mutex<Option<EnqueueError>>,
    /// Has what ended the group been reported here?
    report: Once,
    /// Has this rank's part been said to be over?
    left: Once,
}

impl GroupRecorder {
    /// Makes this rank's ring and opens its peers'. Collective, right after the group has been formed. A
    /// rank that can have no ring goes without, and says so: a group does not fail for want of a recorder.
    /// `None` there, and for a group of one, which waits for nobody.
    ///
    /// # Errors
    ///
    /// A peer is lost or late.
    pub fn open(
        channel: &dyn Bootstrap,
        group: &Communicator,
        job: &Job,
        options: Options,
    ) -> Result<Option<Arc<GroupRecorder>>, BootstrapError> {
        if group.world() == 1 {
            return Ok(None);
        }
        let numbers: Vec<u64> = gather(channel, "name the group", &random())?;
        if let Some(folder) = &options.rings {
            find::sweep_old(folder);
        }
        let ring = make(describe(group, job, numbers[0]), &options);
        let mine = ring.as_ref().map(|ring| ring.path().to_string_lossy().into_owned());
        let paths = gather::<Option<String>>(channel, "share flight recorders", &mine);
        let paths = paths.inspect_err(|_| ring.iter().for_each(Ring::remove))?;
        let Some(ring) = ring else { return Ok(None) };
        let about = ring.about();
        let node = |rank: usize| about.nodes.get(rank);
        let rings = (0..).zip(paths).map(|(rank, path)| {
            let is_here = node(rank) == node(about.rank as usize);
            let reader = Reader::open(path.filter(|_| is_here)?.as_ref()).ok()?;
            // A path of another container may lead to anything here.
            let theirs = reader.about();
            ((theirs.group, theirs.rank) == (about.group, rank as u32)).then_some(reader)
        });
        let rings = rings.collect();
        let recorder = Arc::new(GroupRecorder {
            ring,
            rings,
            options,
            launch: job.launch.clone(),
            is_well: AtomicBool::new(true),
            trouble: Mutex::new(None),
            report: Once::new(),
            left: Once::new(),
        });
        watch::add(&recorder, group.abort_handle(), group.watches());
        Ok(Some(recorder))
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Does the launcher end the job, because it was asked to? Ranks that go then are no matter.
    pub(crate) fn is_being_stopped(&self) -> bool {
        self.launch.is_being_stopped()
    }

    /// By rank, the own one too.
    pub(crate) fn rings(&self) -> &[Option<Reader>] {
        &self.rings
    }

    /// All rings that can be seen, as they are now.
    pub(crate) fn images(&self) -> Vec<Image> {
        self.rings.iter().flatten().filter_map(|ring| ring.image().ok()).collect()
    }

    /// From now on nothing is begun.
    pub(crate) fn end_with(&self, error: EnqueueError) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert(error);
        self.is_well.store(false, Release);
    }

    /// Reports what ended the group, if nobody has. Who comes second waits until that is done: a
    /// process that ended meanwhile would leave half a dump.
    pub(crate) fn report_once(&self, report: impl FnOnce()) {
        self.report.call_once_force(|before| {
            // One that panicked is not made again.
            if !before.is_poisoned() {
                report();
            }
        });
    }

    /// Two ranks that differ are seen before a third has come, and only with it there is a majority. Who
    /// comes learns at once that the group has ended.
    fn await_peers(&self) {
        let start = Instant::now();
        let issued = self.rings.get(self.ring.about().rank as usize);
        let issued = issued.and_then(|own| own.as_ref()?.far()).map_or(0, |far| far.issued);
        let is_awaited = |ring: &Reader| {
            let far = ring.far();
            far.is_some_and(|far| far.issued < issued && far.phase == Phase::Open)
                && ring.life() != Life::Gone
        };
        while start.elapsed() < PATIENCE && self.rings.iter().flatten().any(is_awaited) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Other groups of this process in which somebody is in a call, if ranks wait for one another over them.
    fn in_a_circle(&self) -> Vec<Arc<GroupRecorder>> {
        let is_waiting = |other: &Arc<GroupRecorder>| {
            let far = other.rings.iter().flatten().filter_map(Reader::far);
            !std::ptr::eq(Arc::as_ptr(other), self)
                && far.into_iter().any(|far| far.finished < far.issued)
        };
        let others: Vec<_> = watch::groups().into_iter().filter(is_waiting).collect();
        if others.is_empty() {
            return others;
        }
        let beside = others.iter().flat_map(|other| other.images());
        let images: Vec<Image> = self.images().into_iter().chain(beside).collect();
        let mut verdicts = analyse(&images).into_iter().flat_map(|found| found.verdicts);
        let is_circle = verdicts.any(|verdict| verdict.class == Class::CrossGroupDeadlock);
        if is_circle { others } else { Vec::new() }
    }

    /// This rank's part is over: if it said no goodbye its peers see that it left, its ring's name goes, and those
    /// of peers that died before they could take theirs away.
    pub(crate) fn leave(&self) {
        // A child that was forked since shares the ring's memory: its parent goes on.
        if self.ring.about().process.pid == std::process::id() {
            self.left.call_once(|| self.leave_now());
        }
    }

    fn leave_now(&self) {
        if matches!(self.ring.phase(), Phase::Open | Phase::Committing | Phase::Closing) {
            self.ring.enter(Phase::Dropped);
        }
        self.ring.remove();
        let own = rustix::process::geteuid().as_raw();
        for reader in self.rings.iter().flatten().filter(|reader| reader.life() == Life::Gone) {
            let path = Path::new(reader.source());
            let is_ring = std::fs::symlink_metadata(path).is_ok_and(|meta| {
                meta.is_file() && meta.uid() == own && find::is_named_as_a_ring(path)
            });
            if is_ring {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Recorder for GroupRecorder {
    #[inline]
    fn begin(&self, entry: &Entry<'_>) -> bool {
        if !self.is_well.load(Acquire) {
            return false;
        }
        self.ring.write(entry);
        true
    }

    #[inline]
    fn end(&self) {
        self.ring.finish();
        if self.ring.phase() == Phase::Committing {
            self.ring.enter(Phase::Open);
        }
    }

    fn trouble(&self, seq: u64) -> EnqueueError {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.clone().unwrap_or_else(|| EnqueueError::Aborted {
            step: "begin".to_owned(),
            seq,
            rank: self.ring.about().rank,
            reason: "the watchdog ended the group".to_owned(),
        })
    }

    fn failed(&self, error: &EnqueueError) {
        self.ring.write_end(&error.to_string());
        self.ring.enter(Phase::Failed);
        let cause = Cause::Failed(error.to_string());
        let is_mismatch = matches!(error.kind(), EnqueueError::Mismatch { .. });
        // Who is awaited here may wait in another group.
        let beside = if is_mismatch { Vec::new() } else { self.in_a_circle() };
        let images = || {
            if is_mismatch {
                self.await_peers();
            }
            let beside = beside.iter().flat_map(|other| other.images());
            self.images().into_iter().chain(beside).collect()
        };
        if let Some(said) = dump::report(self, &beside, images, &cause) {
            said.log();
        }
    }

    fn closed(&self) {
        self.ring.finish();
        self.ring.enter(Phase::Closed);
        self.ring.remove();
    }

    fn left(&self) {
        self.leave();
    }

    fn name_site(&self, name: &str) {
        self.ring.name_site(name);
    }
}

impl Drop for GroupRecorder {
    /// Of one that no communicator was given.
    fn drop(&mut self) {
        self.leave();
    }
}

fn make(about: About, options: &Options) -> Option<Ring> {
    match Ring::make(options.rings.as_deref(), about) {
        Ok((ring, None)) => Some(ring),
        Ok((ring, Some(why))) => {
            tracing::warn!(
                target: "crossover::recorder",
                "{why}; the flight recorder is in memory without a name: `crossover diagnose` finds it \
                 for as long as a rank of this node lives, or give the setting record_dir a folder with room"
            );
            Some(ring)
        }
        Err(e) => {
            tracing::warn!(target: "crossover::recorder", "{e}: this rank goes without");
            None
        }
    }
}

fn describe(group: &Communicator, job: &Job, number: u64) -> About {
    let reports = group.facts().reports();
    About {
        job: job.launch.job().to_owned(),
        attempt: job.launch.attempt(),
        tag: group.facts().profile().tag.clone(),
        group: number,
        rank: group.rank(),
        world: group.world(),
        members: reports.iter().map(|report| report.label.clone()).collect(),
        nodes: nodes(group),
        process: Process::here(),
        device: job.device.clone(),
        policy: format!("{:#}", group.plan().policy_digest()),
        backends: job.backends.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        targets: group.targets().to_vec(),
    }
}

/// Every rank's node. Of a large group numbers stand for them, so that they fit.
fn nodes(group: &Communicator) -> Vec<String> {
    const LARGE: u32 = 128; // size: of 60 B a rank, half of the room
    let reports = group.facts().reports();
    let number = |node: &str| {
        let nodes = group.facts().nodes();
        nodes.iter().position(|(id, _)| *id == node).unwrap_or_default().to_string()
    };
    let name = |node: &str| if group.world() > LARGE { number(node) } else { node.to_owned() };
    reports.iter().map(|report| name(&report.node)).collect()
}

/// A number that no other group has, from the standard library's source of hash seeds.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
impl GroupRecorder {
    /// That of a rank of this process, which sees no peer.
    pub(crate) fn sample(folder: &Path) -> GroupRecorder {
        GroupRecorder {
            ring: Ring::make(Some(folder), About::sample(0, &["n", "n"])).expect("memory").0,
            rings: Vec::new(),
            options: Options {
                rings: Some(folder.to_owned()),
                dumps: Dumps::None,
                on_hang: OnHang::Log,
                warn_after: None,
                hang_after: Duration::from_secs(60),
            },
            launch: Launch::new(0, 2),
            is_well: AtomicBool::new(true),
            trouble: Mutex::new(None),
            report: Once::new(),
            left: Once::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use super::*;
    use crate::life::FORKING;

    #[test]
    fn a_forked_child_drops_what_it_inherits_and_its_parent_goes_on() {
        unsafe extern "C" {
            /// Of the C library.
            fn fork() -> c_int;
            /// Of the C library.
            fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
            /// Of the C library.
            fn _exit(status: c_int) -> !;
        }
        let _alone = FORKING.lock().expect("no such test panics");
        let folder = tempfile::TempDir::new().expect("a folder");
        let recorder = GroupRecorder::sample(folder.path());
        // SAFETY: the child frees memory, makes system calls, and never returns.
        let child = unsafe { fork() };
        if child == 0 {
            drop(recorder);
            // SAFETY: it may be called at any time.
            unsafe { _exit(0) };
        }
        let mut status = -1;
        // SAFETY: a place for the answer.
        let ended = unsafe { waitpid(child, &raw mut status, 0) };
        assert_eq!((ended, status), (child, 0));
        assert_eq!(recorder.ring.phase(), Phase::Open, "the child left its parent's group");
        let path = recorder.ring.path().to_owned();
        assert!(path.exists(), "the child took its parent's ring away");
        drop(recorder);
        assert!(!path.exists(), "a ring was left behind");
    }
}
