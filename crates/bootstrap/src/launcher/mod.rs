//! Starts the ranks of one job as processes of this node, and sees them all end.

mod binding;
mod directory;
mod output;
mod process;
mod signals;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::Signal;

pub use self::binding::Bind;
use self::directory::JobDirectory;
pub use self::output::Output;
use self::output::Readers;
use self::process::Rank;
use self::signals::Signals;

/// A program to run as `ranks` processes, each with the `CROSSOVER_*` variables of its rank and a
/// rendezvous of the job's own.
///
/// ```no_run
/// use crossover_bootstrap::launcher::{Job, Output};
///
/// let outcome = Job::new(4, "my-engine", ["--model", "m"]).output(Output::Prefixed).run()?;
/// if let Some(failure) = outcome.failure {
///     eprintln!("{failure}");
/// }
/// # Ok::<(), crossover_bootstrap::launcher::LauncherError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    ranks: u32,
    program: OsString,
    arguments: Vec<OsString>,
    variables: BTreeMap<OsString, OsString>,
    output: Output,
    grace: Duration,
    bind: Bind,
    threads: u32,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What a shell would return for the first rank that failed: its exit code, or 128 and the
    /// number of the signal that ended it; 0 if none failed.
    pub code: u8,
    /// Which rank failed first.
    pub failure: Option<RankFailure>,
    /// The job's name, which its ranks were told.
    pub job: String,
}

/// The first rank that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} (pid {pid}) {how}")]
pub struct RankFailure {
    /// Which.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// How it ended.
    pub how: Ending,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It returned this code.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
}

/// A job could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// The job's directory or the signal handlers could not be set up.
    #[error("cannot {what}: {source}")]
    Prepare {
        /// A verb phrase.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A process could not be started; those that were have been ended.
    #[error("cannot start rank {rank} as `{program}`: {source}")]
    Spawn {
        /// Which.
        rank: u32,
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Job {
    /// `program`, searched in PATH, with the same arguments for each rank.
    pub fn new<A: Into<OsString>>(
        ranks: u32,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Job {
            ranks,
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            variables: BTreeMap::new(),
            output: Output::Inherited,
            grace: Duration::from_secs(10),
            bind: Bind::default(),
            threads: 1,
        }
    }

    /// A variable for all ranks, beside those of this process.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// What becomes of the ranks' output; [`Output::Inherited`] by default.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// How long ranks may go on after one has failed, to end by themselves with their own
    /// message, and how long after SIGTERM before SIGKILL; 10 s by default.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// On which processors the ranks run; [`Bind::Spread`] by default.
    #[must_use]
    pub fn bind(mut self, bind: Bind) -> Self {
        self.bind = bind;
        self
    }

    /// How many threads each rank keeps busy, 1 by default: ranks are bound where there is room
    /// for as many. Less than 1 is taken as 1.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Runs the job to its end. SIGINT, SIGTERM and SIGHUP are passed on to all ranks meanwhile; they
    /// end this process no more by themselves afterwards. No process of a rank's process group,
    /// and no file, is left. If this thread is killed, the kernel kills the ranks.
    ///
    /// # Errors
    ///
    /// The job could not be started. A rank's failure is an [`Outcome`].
    pub fn run(self) -> Result<Outcome, LauncherError> {
        let directory = JobDirectory::create()?;
        let signals = Signals::catch()?;
        let mut readers = Readers::new(self.output);
        let mut running = Running { ranks: Vec::new() };
        let processors = binding::sets(self.bind, self.ranks, self.threads);
        for (rank, processors) in (0..self.ranks).zip(processors) {
            let mut rank = Rank::spawn(&self, rank, processors, &directory)?;
            readers.read(&mut rank);
            running.ranks.push(rank);
        }
        let failure = running.supervise(&signals, self.grace);
        readers.finish();
        let code = failure.as_ref().map_or(0, |failure| failure.how.code());
        Ok(Outcome { code, failure, job: directory.job().to_owned() })
    }
}

/// Ranks that have not ended. Killed on drop.
struct Running {
    ranks: Vec<Rank>,
}

impl Running {
    fn supervise(&mut self, signals: &Signals, grace: Duration) -> Option<RankFailure> {
        let mut failure: Option<RankFailure> = None;
        // What is done to the others next, and when.
        let mut next: Option<(Signal, Instant)> = None;
        while !self.ranks.is_empty() {
            process::wait(&self.ranks, signals, next.map(|(_, when)| when));
            for signal in signals.take() {
                self.signal(signal);
                next.get_or_insert((Signal::KILL, Instant::now() + grace));
            }
            for rank in self.ranks.extract_if(.., |rank| rank.has_ended()).collect::<Vec<_>>() {
                let (number, pid) = (rank.number(), rank.pid());
                if let Some(how) = Ending::failed(rank.reap()) {
                    failure.get_or_insert(RankFailure { rank: number, pid, how });
                    next.get_or_insert((Signal::TERM, Instant::now() + grace));
                }
            }
            if let Some((signal, when)) = next
                && Instant::now() >= when
            {
                self.signal(signal);
                next = Some((Signal::KILL, Instant::now() + grace));
            }
        }
        failure
    }

    fn signal(&self, signal: Signal) {
        self.ranks.iter().for_each(|rank| rank.signal(signal));
        // A stopped process hears nothing else.
        self.ranks.iter().for_each(|rank| rank.signal(Signal::CONT));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        for rank in self.ranks.drain(..) {
            rank.reap();
        }
    }
}

impl Ending {
    /// As a shell would say it.
    pub fn code(self) -> u8 {
        match self {
            Ending::Code(code) => code,
            Ending::Signal(signal) => 128 + signal,
        }
    }

    /// `None` for success.
    fn failed(status: ExitStatus) -> Option<Self> {
        match (status.code(), status.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(Ending::Code(code as u8)),
            (None, signal) => Some(Ending::Signal(signal.unwrap_or_default() as u8)),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Code(code) => write!(f, "ended with code {code}"),
            Ending::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}
