use std::ffi::c_int;
use std::panic::Location;
use std::path::Path;
use std::time::Instant;

use crossover_core::backend::EnqueueError;
use crossover_core::record::{Entry, Event};
use crossover_core::registry::Registry;
use tempfile::TempDir;

use super::judge::{Judged, error, is_harmless, judge};
use super::look::Suspect;
use super::*;
use crate::about::About;
use crate::diagnosis::{Class, NOTE, Verdict};
use crate::image::{Image, Phase};
use crate::layout::SLOTS;
use crate::life::FORKING;
use crate::reader::Reader;
use crate::ring::Ring;

#[path = "../../tests/group/mod.rs"]
mod group;

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
    group::form(&channel, &Registry::empty()).abort_handle()
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

/// Three ranks of a group, by their rings.
struct Ranks {
    rings: Vec<(Ring, Reader)>,
    seq: u64,
    _folder: TempDir,
}

impl Ranks {
    fn new() -> Ranks {
        let folder = TempDir::new().expect("a folder");
        let ring = |rank| {
            let about = About::sample(rank, &["n", "n", "n"]);
            let ring = Ring::make(Some(folder.path()), about).expect("memory").0;
            let reader = Reader::open(ring.path()).expect("a ring");
            (ring, reader)
        };
        Ranks { rings: (0..3).map(ring).collect(), seq: 0, _folder: folder }
    }

    fn write(&self, rank: usize, event: Event<'_>) {
        let (seq, site) = (self.seq, Location::caller());
        self.rings[rank].0.write(&Entry { event, seq, target: 0, site });
    }

    /// All note their state and replay the graph, so many times.
    fn steps(&mut self, steps: usize) {
        for step in 0..steps {
            self.note(&[(0, step), (1, step), (2, step)]);
            self.replay([1; 3]);
        }
    }

    fn note(&self, states: &[(usize, usize)]) {
        for (rank, state) in states {
            self.write(*rank, Event::State { step: 1, digest: *state as u64 });
            self.rings[*rank].0.finish();
        }
    }

    fn replay(&mut self, graphs: [u64; 3]) {
        self.seq += 1;
        for (rank, graph) in graphs.into_iter().enumerate() {
            self.write(rank, Event::Replay { graph });
            self.rings[rank].0.finish();
        }
    }

    fn look(&self) -> Vec<Image> {
        self.rings.iter().map(|(_, reader)| reader.image().expect("a ring")).collect()
    }
}

/// As many steps as overwrite a ring.
const WINDOW: usize = SLOTS;

fn judged<'a>(suspect: Suspect, before: &'a [Image], after: &'a [Image]) -> Judged<'a> {
    judge(suspect, &before[0].about, before, after).expect("ranks have parted")
}

#[test]
fn what_the_first_look_explains_is_judged_by_it() {
    let drift = |ranks: &mut Ranks| ranks.note(&[(0, 7), (1, 8), (2, 7)]);
    let leave_out = |ranks: &mut Ranks| {
        ranks.note(&[(0, 7), (2, 7)]);
        ranks.replay([1; 3]);
    };
    // The next note stands in its place.
    let leave_out_one_of_two = |ranks: &mut Ranks| ranks.note(&[(0, 7), (2, 7)]);
    let replay_another = |ranks: &mut Ranks| ranks.replay([1, 2, 1]);
    let cases: [(fn(&mut Ranks), _, _); 4] = [
        (drift, Class::StateDrift, true),
        (leave_out, Class::BranchDivergence, true),
        (leave_out_one_of_two, Class::StateDrift, true),
        (replay_another, Class::BranchDivergence, false),
    ];
    for (part, class, expected) in cases {
        let mut ranks = Ranks::new();
        ranks.steps(3);
        part(&mut ranks);
        ranks.steps(3);
        let before = ranks.look();
        ranks.steps(WINDOW);
        let after = ranks.look();
        let Judged { verdict, images } = judged(Suspect::Differs, &before, &after);
        assert_eq!((verdict.class, &verdict.ranks[..]), (class, &[1][..]), "{verdict:#?}");
        assert_eq!(images, before, "the dump would not hold the cause");
        assert_eq!(is_harmless(&verdict, Suspect::Differs), expected, "{verdict:#?}");
        let is_note = expected && class == Class::BranchDivergence;
        assert_eq!(verdict.fields == [NOTE], is_note, "{verdict:#?}");
    }
}

#[test]
fn a_cause_older_than_what_is_kept_is_a_word_until_ranks_wait() {
    let mut ranks = Ranks::new();
    ranks.note(&[(0, 7), (1, 8), (2, 7)]);
    ranks.steps(WINDOW);
    let before = ranks.look();
    ranks.steps(10);
    let after = ranks.look();
    let Judged { verdict, .. } = judged(Suspect::Differs, &before, &after);
    assert_eq!((verdict.class, &verdict.ranks[..]), (Class::DivergedBeforeWindow, &[1][..]));
    assert!(verdict.sentence.contains("before the oldest record that is kept"), "{verdict:#?}");
    assert!(is_harmless(&verdict, Suspect::Differs), "{verdict:#?}");
    // Two ranks are in a call to which the third does not come.
    ranks.seq += 1;
    (0..2).for_each(|rank| ranks.write(rank, Event::Replay { graph: 1 }));
    let (before, after) = (ranks.look(), ranks.look());
    let Judged { verdict, images } = judged(Suspect::Waits, &before, &after);
    assert!(!is_harmless(&verdict, Suspect::Waits), "{verdict:#?}");
    let error = error(&verdict, images, 0, PERIOD);
    let EnqueueError::Late { seq, ranks: late, .. } = error.kind() else {
        panic!("ranks wait: {verdict:#?}");
    };
    assert_eq!((*seq, &late[..]), (ranks.seq, &[2][..]));
    assert_eq!(error.to_string(), format!("the watchdog: {}", verdict.sentence), "told once");
}

#[test]
fn a_mismatch_names_a_call() {
    let mut ranks = Ranks::new();
    ranks.note(&[(0, 7), (2, 7)]);
    ranks.steps(WINDOW);
    let before = ranks.look();
    let Judged { mut verdict, images } = judged(Suspect::Differs, &before, &before);
    assert_eq!(verdict.effect, None, "records of one number do not belong together");
    let seq = |verdict: &Verdict| match error(verdict, images, 0, PERIOD).kind() {
        EnqueueError::Mismatch { seq, .. } => *seq,
        other => panic!("ranks have parted: {other}"),
    };
    assert!((1..=ranks.seq).contains(&seq(&verdict)), "{verdict:#?}");
    verdict.seq = None;
    assert_eq!(seq(&verdict), ranks.seq);
}
