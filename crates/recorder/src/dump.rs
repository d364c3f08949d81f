//! What is written when a group ends badly: by whichever rank of the node comes first, for all of them,
//! since the one that matters may be gone. A folder with every ring, the verdict, and a picture.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use crate::about::About;
use crate::analyse::analyse;
use crate::diagnosis::{Class, Diagnosis, Verdict};
use crate::export::timeline;
use crate::find::ENDING;
use crate::forked::PerProcess;
use crate::group::{Dumps, GroupRecorder};
use crate::image::Image;
use crate::place::{PREFIX, plain};
use crate::reader::Reader;
use crate::text::text;
use crate::words::say_the_same;

/// What is written first.
const VERDICT: &str = "verdict.txt";
/// Held while a dump is written.
static WRITING: PerProcess<Mutex<()>> = PerProcess::new(Mutex::default);
/// How long a process that ends waits for a dump that another thread of it writes.
const AT_EXIT: Duration = Duration::from_secs(2);

/// Dumps that are kept in the folder that nobody chose, and those of the last failure, however many.
const KEPT: usize = 16;
/// Groups of one job that fail within this time fail of the same: the first that ends takes its processes
/// along, and a watchdog's second look is less than a second after the first.
const ONE_FAILURE: Duration = Duration::from_secs(60);

/// Says what is the matter, once a rank, and writes the dump, once a node. `beside` are other groups of
/// this process, whose rings are among the images. Of a job that was stopped nothing is the matter: some
/// of its ranks end before others.
pub(crate) fn report(
    recorder: &GroupRecorder,
    beside: &[Arc<GroupRecorder>],
    images: impl FnOnce() -> Vec<Image>,
    cause: &Cause,
) -> Option<Said> {
    if recorder.is_being_stopped() {
        tracing::info!(target: "crossover::watch", "the job is being stopped by its launcher: {cause}");
        return None;
    }
    let mut said = None;
    recorder.report_once(|| said = written(recorder, beside, &images(), cause));
    let about = recorder.ring().about();
    let (rank, tag) = (about.rank, about.tag.clone());
    said.map(|sentence| Said { rank, tag, sentence })
}

/// Why a dump is written.
pub(crate) enum Cause {
    /// The watchdog found something.
    Watchdog,
    /// A call failed with this error.
    Failed(String),
}

impl Cause {
    /// With the verdict, in one sentence that says nothing twice: one that quotes the error, or that the
    /// error repeats because another rank's watchdog or a backend came to it first, stands for both.
    fn with(&self, verdict: &str, is_quote: bool) -> String {
        let head = verdict.split(": ").next().unwrap_or(verdict);
        let repeats = |error: &str| error.contains(head) || say_the_same(error, verdict);
        match self {
            Cause::Failed(error) if is_quote || repeats(error) => {
                format!("the group failed: {verdict}")
            }
            _ => format!("{self}: {verdict}"),
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Watchdog => f.write_str("the watchdog"),
            Cause::Failed(error) => write!(f, "the group failed: {error}"),
        }
    }
}

/// What is to be said of a dump, by whom.
pub(crate) struct Said {
    rank: u32,
    tag: String,
    sentence: String,
}

impl Said {
    /// Says it. Whoever waits for the dump, or to be freed, does not wait for a log that nobody reads.
    pub(crate) fn log(&self) {
        let Said { rank, tag, sentence } = self;
        tracing::error!(target: "crossover::watch", rank, tag, "{sentence}");
    }
}

/// Writes the dump. What is to be said of it.
fn written(
    recorder: &GroupRecorder,
    beside: &[Arc<GroupRecorder>],
    images: &[Image],
    cause: &Cause,
) -> Option<String> {
    let about = recorder.ring().about();
    let diagnosis = analyse(images).into_iter().find(|found| found.job == about.job)?;
    let mut verdicts = diagnosis.verdicts.iter();
    // A circle of waits is told in one of its groups.
    let is_mine = |verdict: &&Verdict| {
        verdict.group == about.group || verdict.class == Class::CrossGroupDeadlock
    };
    let mine = verdicts.find(is_mine);
    let mine = mine.or(diagnosis.verdicts.first());
    let verdict = mine.map_or("no rank is odd as far as rings tell", |verdict| &verdict.sentence);
    // The own group's first: the dump is called after it.
    let groups = std::iter::once(recorder.rings()).chain(beside.iter().map(|other| other.rings()));
    let rings: Vec<&Reader> = groups.flatten().flatten().collect();
    let dump = write(&recorder.options().dumps, &rings, images, &diagnosis, &cause.to_string());
    let is_quote = mine.is_some_and(|verdict| verdict.class == Class::Ended);
    Some(said(&cause.with(verdict, is_quote), &dump))
}

/// A dump that is there.
pub(crate) struct Dumped {
    pub(crate) folder: PathBuf,
    /// Had another process written it before, and told of it?
    pub(crate) is_others: bool,
}

/// A verdict, and where more is to be had.
pub(crate) fn said(verdict: &str, dump: &io::Result<Option<Dumped>>) -> String {
    match dump {
        Ok(Some(Dumped { folder, .. })) => {
            format!("{verdict}; `crossover diagnose {}` says more", folder.display())
        }
        Ok(None) => verdict.to_owned(),
        Err(e) => format!(
            "{verdict}; no whole dump could be written: {e}; set dump_dir to a folder with room"
        ),
    }
}

/// The dump, if any is wanted: this process's, or that of the one of this node that came first. Its folder is
/// called after the first ring's group.
pub(crate) fn write(
    dumps: &Dumps,
    rings: &[&Reader],
    images: &[Image],
    diagnosis: &Diagnosis,
    cause: &str,
) -> io::Result<Option<Dumped>> {
    let root = match dumps {
        Dumps::None => return Ok(None),
        Dumps::In(folder) => {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|e| at(folder, &e))?;
            folder.clone()
        }
        Dumps::Temporary(folder) => own_folder(folder)?,
    };
    let _writing = WRITING.get().lock().unwrap_or_else(PoisonError::into_inner);
    let Some(about) = rings.first().map(|ring| ring.about()) else { return Ok(None) };
    let folder = root.join(name(about));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            // Who was killed while it wrote has told nothing.
            let is_others = folder.join(VERDICT).exists();
            return Ok(Some(Dumped { folder, is_others }));
        }
        Err(e) => return Err(at(&folder, &e)),
    }
    // First what is small and says most: there may be no room for the rest, or no time.
    let said = format!("{cause}\n\n{}", text(diagnosis));
    file(&folder, VERDICT, said.as_bytes())?;
    let json = serde_json::to_vec_pretty(diagnosis).map_err(io::Error::other)?;
    file(&folder, "verdict.json", &json)?;
    for ring in rings {
        let theirs = ring.about();
        let (tag, group, rank) = (plain(&theirs.tag), theirs.group, theirs.rank);
        let name = match group == about.group {
            true => format!("{rank}{ENDING}"),
            false => format!("{tag}.{group:016x}.{rank}{ENDING}"),
        };
        if let Some(bytes) = ring.bytes() {
            file(&folder, &name, &bytes)?;
        }
    }
    file(&folder, "timeline.html", timeline(images, diagnosis).as_bytes())?;
    if matches!(dumps, Dumps::Temporary(_)) {
        remove_oldest(&root);
    }
    Ok(Some(Dumped { folder, is_others: false }))
}

/// The process ends: a dump that is being written is written to its end.
pub(crate) fn await_written() {
    let start = Instant::now();
    let is_being_written = || matches!(WRITING.get().try_lock(), Err(TryLockError::WouldBlock));
    while is_being_written() && start.elapsed() < AT_EXIT {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The folder's name: job, group and, where the group spans nodes, the node's first rank, since they may
/// share the folder in which dumps are.
fn name(about: &About) -> String {
    let (job, tag, nodes) = (plain(&about.job), plain(&about.tag), &about.nodes);
    let name = format!("{PREFIX}{job}.{tag}.{:016x}", about.group);
    let own = nodes.get(about.rank as usize);
    match nodes.iter().position(|node| Some(node) == own) {
        Some(first) if nodes.iter().any(|node| Some(node) != own) => {
            format!("{name}.node-of-{first}")
        }
        _ => name,
    }
}

fn file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(|e| at(&path, &e))
}

/// The error, with what it is about.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Where this user's dumps are, in this folder for temporary files.
pub fn own_dumps(temporary: &Path) -> PathBuf {
    temporary.join(format!("crossover-{}", rustix::process::geteuid().as_raw()))
}

/// A folder of this user's in the one for temporary files, where anybody can have put something else.
fn own_folder(temporary: &Path) -> io::Result<PathBuf> {
    let (user, folder) = (rustix::process::geteuid().as_raw(), own_dumps(temporary));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(at(&folder, &e)),
        _ => {}
    }
    let meta = fs::symlink_metadata(&folder).map_err(|e| at(&folder, &e))?;
    match meta.is_dir() && meta.uid() == user {
        true => Ok(folder),
        false => {
            let why = format!("{} is not a folder of this user's: set dump_dir", folder.display());
            Err(io::Error::new(ErrorKind::PermissionDenied, why))
        }
    }
}

fn remove_oldest(root: &Path) {
    let dumps = fs::read_dir(root).into_iter().flatten().flatten().filter_map(|entry| {
        let is_dump = entry.file_name().to_string_lossy().starts_with(PREFIX);
        is_dump.then(|| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).flatten()
    });
    for path in surplus(dumps.collect()) {
        let _ = fs::remove_dir_all(path);
    }
}

/// Those of dumps, with the times of their ends, that are not to be kept. Groups of one failure stay or go
/// together: what ended one may be told by another.
fn surplus(mut dumps: Vec<(SystemTime, PathBuf)>) -> Vec<PathBuf> {
    dumps.sort();
    let (mut kept, mut is_full) = (0, false);
    let mut gone = Vec::new();
    while let Some((last, path)) = dumps.last().cloned() {
        let is_same = |(at, other): &mut (SystemTime, PathBuf)| {
            job(other) == job(&path) && last.duration_since(*at).is_ok_and(|t| t <= ONE_FAILURE)
        };
        let failure: Vec<PathBuf> = dumps.extract_if(.., is_same).map(|(_, path)| path).collect();
        is_full |= kept > 0 && kept + failure.len() > KEPT;
        match is_full {
            true => gone.extend(failure),
            false => kept += failure.len(),
        }
    }
    gone
}

/// The job of a dump, as it is in its name.
fn job(dump: &Path) -> Option<String> {
    let name = dump.file_name()?.to_string_lossy().into_owned();
    name.strip_prefix(PREFIX)?.split('.').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_twice_of_a_failure() {
        let error = "call 5: ranks made different calls: size mismatch in group `tp`, call 5: rank 1 has 67";
        let failed = Cause::Failed(error.to_owned());
        // Another rank's watchdog has seen it before this rank came.
        let mine = "size mismatch in group `tp`, call 5: rank 1 has 67, ranks 0 and 2 have 64";
        assert_eq!(failed.with(mine, false), format!("the group failed: {mine}"));
        let quote =
            format!("group `tp` ended with an error on all ranks; ranks 0 and 1 say: {error}");
        assert_eq!(failed.with(&quote, true), format!("the group failed: {quote}"));
        // A circle has no first group, and a backend has compared the ranks by itself.
        for (error, verdict) in [
            (
                "the watchdog: deadlock over groups `tp`, `ep`: rank 1 of `tp` waits in call 13 for rank 2; \
                 rank 2 of `ep` waits in call 9 for ranks 0 and 1",
                "deadlock over groups `ep`, `tp`: rank 2 of `ep` waits in call 9 for ranks 0 and 1; rank 0 \
                 of `tp` waits in call 13 for rank 2",
            ),
            (
                "call 13: ranks made different calls: rank 2 has the replay of graph 2, rank 1 has the \
                 replay of graph 1",
                "branch divergence in group `tp`, record 20 after call 13: rank 2 has the replay of \
                 graph 2, rank 1 has the replay of graph 1; neither side is a majority",
            ),
        ] {
            let failed = Cause::Failed(error.to_owned());
            assert_eq!(failed.with(verdict, false), format!("the group failed: {verdict}"));
        }
        let other = "in group `tp` rank 1 is gone";
        assert_eq!(failed.with(other, false), format!("the group failed: {error}: {other}"));
        assert_eq!(Cause::Watchdog.with(&quote, true), format!("the watchdog: {quote}"));
    }

    #[test]
    fn nodes_that_share_a_folder_have_names_of_their_own() {
        let names = |nodes: &[&str]| [0, 1, 2, 3].map(|rank| name(&About::sample(rank, nodes)));
        let plain = "crossover.j.tp.0000000000000007";
        assert_eq!(names(&["n"; 4]), [plain; 4]);
        let spread = [0, 1, 0, 1].map(|first| format!("{plain}.node-of-{first}"));
        assert_eq!(names(&["n", "m", "n", "m"]), spread);
    }

    #[test]
    fn dumps_of_one_failure_stay_or_go_together() {
        let at = |job: &str, seconds: u64, n: usize| {
            let dump = |nth| PathBuf::from(format!("/d/crossover.{job}.tp.{nth:016x}-{seconds}"));
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(100_000 + seconds);
            (0..n).map(|nth| (time, dump(nth))).collect::<Vec<_>>()
        };
        let gone = |dumps: &[Vec<(SystemTime, PathBuf)>]| {
            let mut gone = surplus(dumps.concat());
            gone.sort();
            gone
        };
        let paths = |dumps: Vec<(SystemTime, PathBuf)>| {
            dumps.into_iter().map(|(_, path)| path).collect::<Vec<_>>()
        };
        assert!(gone(&[at("j", 0, 10), at("j", 30, 12), at("j", 60, 20)]).is_empty());
        assert!(gone(&[at("j", 0, 8), at("k", 1, 8)]).is_empty());
        // Of the same name, but of an earlier failure.
        assert_eq!(gone(&[at("j", 0, 1), at("j", 61, 20)]), paths(at("j", 0, 1)));
        // Ten and five are kept; two would be one too many, and what is older goes as well.
        let dumps = [at("l", 0, 1), at("k", 100, 2), at("k", 500, 5), at("j", 510, 10)];
        assert_eq!(gone(&dumps), [paths(at("k", 100, 2)), paths(at("l", 0, 1))].concat());
    }
}
