//! Tests of backend `mpi`: this program again, started as ranks by the launcher of a real library,
//! which `cargo xtask mpi` fetches. Without it they skip, and say so.

use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::groups::{self, Plan, Seat};

use self::left::Sweep;

mod left;

/// Says to a rank where the ranks meet.
const FOLDER: &str = "TESTS_OF_MPI_MEET";
/// What `cargo xtask mpi` fetches.
const LIBRARY: &str = "target/toolchains/mpich-5.0.2";
/// How long a launcher may take.
const LIMIT: Duration = Duration::from_secs(240);
/// How long a rank's end may be told after the launcher's own.
const TOLD: Duration = Duration::from_secs(20);
/// Around every rank, because the launcher's own status is no verdict: runs the rank, tells how it ended
/// and ends alike. The launcher tells ranks of another's end by SIGUSR1, which an MPI library knows and a
/// shell would die of. One that is killed tells nothing, which is a failure.
const RANK: &str =
    r#"trap : USR1; "$@"; code=$?; echo $code > "$TESTS_OF_MPI_MEET/status-$PMI_RANK""#;
/// Sixteen ranks on two processors are enough.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The folder of the library, with `bin`, `include` and `lib`; or a sentence on stderr.
pub fn library() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.join(LIBRARY);
    if folder.join("bin/mpiexec").exists() {
        return Some(folder);
    }
    tell("skipped: there is no MPI library here; `cargo xtask mpi` fetches one");
    None
}

/// Runs `body` on so many ranks that the launcher starts, each a process. `name` is the test's.
///
/// # Panics
///
/// If a rank fails, or all take too long.
pub fn ranks(name: &str, count: u32, body: impl FnOnce()) {
    if taken() {
        // All that were started begin with MPI, or none can.
        groups::run(count, &Plan::forcing("mpi"), |_| ());
        return body();
    }
    let Some(library) = library() else { return };
    let folder = tempfile::tempdir().expect("a folder to meet in");
    let ended = Job::new(&library, folder.path(), name).run(&["-n", &count.to_string()]);
    ended.verdict(count).unwrap_or_else(|why| panic!("{name}: {why}"));
}

/// Is this process a rank? Then it takes its seat.
pub fn taken() -> bool {
    let Some(folder) = folder() else { return false };
    let rank = std::env::var("PMI_RANK").ok().and_then(|rank| rank.parse().ok());
    Seat { rank: rank.expect("the launcher tells ranks their number"), folder }.take();
    true
}

/// Where the ranks meet, if this process is one.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// A launcher's job: one test of this program.
pub struct Job {
    command: Command,
    folder: PathBuf,
    test: String,
    outlived: bool,
}

/// How a job ended.
#[derive(Debug)]
pub struct JobEnded {
    /// The launcher's own, if it came to an end in time.
    pub status: Option<ExitStatus>,
    /// What it and the ranks said.
    pub said: String,
    /// Where the ranks have met.
    folder: PathBuf,
    /// After the verdict, since ranks may outlive their launcher.
    _sweep: Sweep,
}

impl JobEnded {
    /// The ranks' own ends are the verdict: a rank that failed, crashed after its test or never ran is
    /// seen here, whatever the launcher made of it. Of the launcher one failure alone is let pass: MPICH's
    /// writes to proxies that have ended already, and dies of SIGPIPE.
    ///
    /// # Errors
    ///
    /// Not all ranks, of this many, ended well.
    pub fn verdict(&self, count: u32) -> Result<(), String> {
        let broken = self.status.is_some_and(|s| s.signal() == Some(Signal::PIPE.as_raw()));
        // A launcher that died may have left ranks behind that are about to end.
        let until = Instant::now() + if broken { TOLD } else { Duration::ZERO };
        let codes = (0..count).map(|rank| (rank, self.code(rank, until)));
        let wrong: Vec<_> = codes.filter(|(_, code)| *code != Some(0)).collect();
        if !wrong.is_empty() {
            return Err(format!("of {count} ranks these did not end with 0: {wrong:?}: {self:#?}"));
        }
        match broken || self.status.is_some_and(|status| status.success()) {
            true => Ok(()),
            false => Err(format!("the launcher of {count} ranks failed: {self:#?}")),
        }
    }

    /// What a rank ended with; signals are 128 and more.
    fn code(&self, rank: u32, until: Instant) -> Option<i32> {
        loop {
            let told = std::fs::read_to_string(self.folder.join(format!("status-{rank}")));
            // The line is whole once its end is there.
            if let Some(code) = told.ok().as_deref().and_then(|text| text.strip_suffix('\n')) {
                return code.parse().ok();
            }
            if Instant::now() > until {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Job {
    /// Of the test of this name, whose ranks meet in `folder`.
    pub fn new(library: &Path, folder: &Path, test: &str) -> Job {
        Self::by(Command::new(library.join("bin/mpiexec")), library, folder, test)
    }

    /// The same, by a command that ends with the launcher's program.
    pub fn by(mut command: Command, library: &Path, folder: &Path, test: &str) -> Job {
        command.env("LD_LIBRARY_PATH", library.join("lib")).env(FOLDER, folder);
        Job { command, folder: folder.to_owned(), test: test.to_owned(), outlived: false }
    }

    /// A variable of the ranks'.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Job {
        self.command.env(name, value);
        self
    }

    /// Every rank has a shell around it that lives on for a while: the launcher does not see a rank's end,
    /// which it would answer with signals to all others.
    #[must_use]
    pub fn outlived(mut self) -> Job {
        self.outlived = true;
        self
    }

    /// Runs it, with these of the launcher's options. That a rank's end ends the others is switched off: what
    /// they make of it is the question.
    ///
    /// # Panics
    ///
    /// If the launcher cannot be started.
    pub fn run(mut self, options: &[&str]) -> JobEnded {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.command.arg("-disable-auto-cleanup").args(options);
        let end = if self.outlived { "sleep 4" } else { "exit $code" };
        self.command.args(["sh", "-c", &format!("{RANK}; {end}"), "sh"]);
        self.command.arg(std::env::current_exe().expect("this program has a file"));
        self.command.args([&self.test, "--exact", "--nocapture", "--test-threads=1"]);
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let sweep = Sweep::new();
        let mut child = self.command.spawn().expect("the launcher starts");
        let read = |mut from: Box<dyn Read + Send>| {
            thread::spawn(move || {
                let mut text = Vec::new();
                let _ = from.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        };
        let said = [
            read(Box::new(child.stdout.take().expect("it is piped"))),
            read(Box::new(child.stderr.take().expect("it is piped"))),
        ];
        let status = until_ended(&mut child, Instant::now() + LIMIT);
        let said = said.map(|text| text.join().unwrap_or_default()).concat();
        JobEnded { status, said, folder: self.folder, _sweep: sweep }
    }
}

fn until_ended(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            _ if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// A line for whoever runs the tests.
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
pub fn tell(what: &str) {
    eprintln!("{what}");
}
