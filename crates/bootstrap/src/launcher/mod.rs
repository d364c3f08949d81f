//! Starts the ranks of one job as processes of this node, and sees them all end.

mod binding;
mod directory;
mod outcome;
mod output;
mod process;
mod signals;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

pub use self::binding::Bind;
use self::directory::JobDirectory;
pub use self::outcome::{Ending, Left, Outcome, RankFailure, Sender, Stop};
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
/// if let Some(cause) = outcome.cause() {
///     eprintln!("{cause}");
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
    /// message, and how long after a signal that asks for their end before SIGKILL; 10 s by default. A
    /// second SIGINT ends the wait, and so does, of the first, that every process of the ranks that are left
    /// is stopped by a signal.
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

    /// Runs the job to its end. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGALRM stop it
    /// meanwhile: they are passed on to all ranks, which
    /// [`Launch::is_being_stopped`](crate::Launch::is_being_stopped) tells that no peer has failed; they
    /// end this process no more by themselves afterwards. A second SIGINT, typed by somebody who does not
    /// want to wait for ranks to end, kills them. No process of a rank's process group, and no
    /// file, is left. If this thread is killed, the kernel kills the ranks.
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
        let seen = running.supervise(&signals, &directory, self.grace);
        let lost = readers.finish().err().map(|e| e.to_string());
        Ok(Outcome { lost, ..seen.outcome(directory.job()) })
    }
}

/// Ranks that have not ended. Killed on drop.
struct Running {
    ranks: Vec<Rank>,
}

impl Running {
    fn supervise(&mut self, signals: &Signals, directory: &JobDirectory, grace: Duration) -> Seen {
        let mut seen = Seen::default();
        // What is done to the others next, and when.
        let mut next: Option<(Signal, Instant)> = None;
        let mut interrupted: Vec<Sender> = Vec::new();
        while !self.ranks.is_empty() {
            process::wait(&self.ranks, signals, next.map(|(_, when)| when));
            // What failed before a signal came has failed.
            for rank in self.ranks.extract_if(.., |rank| rank.has_ended()).collect::<Vec<_>>() {
                let (number, pid) = (rank.number(), rank.pid());
                if let Some(how) = Ending::failed(rank.reap()) {
                    seen.failed(RankFailure { rank: number, pid, how });
                    next.get_or_insert((Signal::TERM, Instant::now() + grace));
                }
            }
            for (signal, sender) in signals.take() {
                seen.asked(signal, sender.clone());
                if seen.stop.is_some() {
                    directory.tell_of_stop();
                }
                // A wrapper passes on what the terminal has sent to this process as well: one key, two
                // senders.
                if signal == Signal::INT && interrupted.contains(&sender) {
                    next = Some((Signal::KILL, Instant::now()));
                    continue;
                }
                if signal == Signal::INT {
                    interrupted.push(sender);
                }
                self.end(signal, &mut seen);
                next.get_or_insert((Signal::KILL, Instant::now() + grace));
            }
            // Who is stopped does not end by itself: nobody is left to wait for.
            let are_stuck = next.is_some_and(|(signal, _)| signal == Signal::TERM)
                && process::are_stopped(&self.ranks);
            if let Some((signal, when)) = next
                && (are_stuck || Instant::now() >= when)
            {
                self.end(signal, &mut seen);
                next = Some((Signal::KILL, Instant::now() + grace));
            }
        }
        seen
    }

    /// Asks all that are there to end, or ends them.
    fn end(&self, signal: Signal, seen: &mut Seen) {
        seen.left.get_or_insert_with(|| process::left(&self.ranks));
        if let (Signal::KILL, Some(stop)) = (signal, &mut seen.stop)
            && stop.killed.is_empty()
        {
            let there = self.ranks.iter().filter(|rank| !rank.has_ended());
            stop.killed = there.map(Rank::number).collect();
        }
        self.signal(signal);
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

/// What was seen of a job's end.
#[derive(Default)]
struct Seen {
    failures: Vec<RankFailure>,
    failed_at: Option<Instant>,
    stop: Option<Stop>,
    /// Who was there when this process first told ranks to end; what they do after that is its doing.
    left: Option<Vec<Left>>,
}

/// Who ends a whole session, or a container, sends its signal to ranks as well, and one of them may be
/// gone before this process has its own.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

impl Seen {
    /// This process was asked to end the job.
    fn asked(&mut self, signal: Signal, sender: Sender) {
        let stop = Ending::Signal(signal.as_raw() as u8);
        let is_it = |failure: &RankFailure| failure.how.code() == stop.code();
        let is_recent = self.failed_at.is_none_or(|at| at.elapsed() < SAME_SIGNAL);
        if self.stop.is_none() && is_recent && self.failures.first().is_none_or(is_it) {
            let signal = signal.as_raw() as u8;
            self.stop = Some(Stop { signal, sender, killed: Vec::new() });
            self.failures.clear();
        }
    }

    fn failed(&mut self, failure: RankFailure) {
        if self.left.is_none() {
            self.failed_at.get_or_insert_with(Instant::now);
            self.failures.push(failure);
        }
    }

    fn outcome(self, job: &str) -> Outcome {
        let Seen { failures, stop, left, .. } = self;
        let stopped = stop.as_ref().map(|stop| Ending::Signal(stop.signal));
        let how = stopped.or_else(|| failures.first().map(|failure| failure.how));
        Outcome {
            code: how.map_or(0, Ending::code),
            failures,
            stop,
            left: left.unwrap_or_default(),
            job: job.to_owned(),
            lost: None,
        }
    }
}
