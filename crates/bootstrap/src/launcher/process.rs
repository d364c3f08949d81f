//! One rank's process.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    set_parent_process_death_signal, waitid,
};
use rustix::thread::CpuSet;

use super::binding;
use super::directory::JobDirectory;
use super::outcome::Left;
use super::output::Output;
use super::signals::Signals;
use super::{Job, LauncherError};

/// A started process, the leader of its own process group.
pub(super) struct Rank {
    number: u32,
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
}

impl Rank {
    pub(super) fn spawn(
        job: &Job,
        rank: u32,
        processors: Option<CpuSet>,
        directory: &JobDirectory,
    ) -> Result<Self, LauncherError> {
        let failed = |source| LauncherError::Spawn {
            rank,
            program: job.program.to_string_lossy().into_owned(),
            source,
        };
        let mut command = Command::new(&job.program);
        let piped = job.output != Output::Inherited;
        let is_quiet = job.output == Output::RankZero && rank != 0;
        command
            .args(&job.arguments)
            .envs(&job.variables)
            .env("CROSSOVER_RANK", rank.to_string())
            .env("CROSSOVER_WORLD_SIZE", job.ranks.to_string())
            .env("CROSSOVER_LOCAL_RANK", rank.to_string())
            .env("CROSSOVER_LOCAL_WORLD_SIZE", job.ranks.to_string())
            .env("CROSSOVER_JOB", directory.job())
            .env("CROSSOVER_ATTEMPT", "0")
            .env("CROSSOVER_RENDEZVOUS", format!("unix:{}", directory.socket().display()))
            .stdin(Stdio::null())
            .stdout(match job.output {
                _ if is_quiet => Stdio::null(),
                Output::Prefixed => Stdio::piped(),
                _ => Stdio::inherit(),
            })
            .stderr(if piped { Stdio::piped() } else { Stdio::inherit() })
            .process_group(0);
        let parent = rustix::process::getpid();
        let prepare = move || {
            processors.as_ref().map_or(Ok(()), binding::bind)?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // It may have died before it could be watched.
            if rustix::process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(rustix::io::Errno::SRCH.into())
            }
        };
        // SAFETY: between fork and exec the closure makes a few system calls; it takes no lock,
        // allocates nothing and touches no shared memory.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Rank { number: rank, child, pid, pidfd }),
            Err(e) => {
                // Nobody else can end it.
                let _ = kill_process_group(pid, Signal::KILL);
                let _ = child.wait();
                Err(failed(e.into()))
            }
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn take_pipes(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// To all of its process group: a rank may be a shell around the program.
    pub(super) fn signal(&self, signal: Signal) {
        // A group without members needs no signal.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Leaves it to be reaped, so that its number is not another process's yet.
    pub(super) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Ends what is left of its process group, and takes its status.
    pub(super) fn reap(mut self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.child.wait().unwrap_or_default()
    }
}

/// Waits until a rank has ended, a signal has come, or `until`.
pub(super) fn wait(ranks: &[Rank], signals: &Signals, until: Option<Instant>) {
    let ended = ranks.iter().map(|r| PollFd::from_borrowed_fd(r.pidfd.as_fd(), PollFlags::IN));
    let mut all: Vec<PollFd<'_>> = ended.chain([signals.interest()]).collect();
    let left = until.map(|until| {
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_micros(100);
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    });
    // Interrupted or not, the caller looks at everything again.
    let _ = poll(&mut all, left.as_ref());
}

/// What there is of ranks now, by their process groups.
pub(super) fn left(ranks: &[Rank]) -> Vec<Left> {
    let members = members(ranks);
    let of = |rank: &Rank, is_it: fn(char) -> bool| {
        let of_rank = members.iter().filter(|m| m.rank == rank.number && is_it(m.state));
        of_rank.map(|m| m.pid).collect()
    };
    let left = |rank: &Rank| Left {
        rank: rank.number,
        running: of(rank, |state| !matches!(state, STOPPED | TRACED)),
        stopped: of(rank, |state| matches!(state, STOPPED | TRACED)),
    };
    ranks.iter().map(left).collect()
}

/// Has a signal stopped all that there is of ranks? A debugger's stop is short, or somebody's who looks; a
/// shell that waits for what is stopped is not stopped itself.
pub(super) fn are_stopped(ranks: &[Rank]) -> bool {
    let members = members(ranks);
    let is_stopped = |rank: &Rank| members.iter().any(|m| m.rank == rank.number);
    !ranks.is_empty() && ranks.iter().all(is_stopped) && members.iter().all(|m| m.state == STOPPED)
}

/// A process of a rank's group.
struct Member {
    rank: u32,
    pid: u32,
    state: char,
}

/// By a signal; and by a debugger.
const STOPPED: char = 'T';
const TRACED: char = 't';

/// Those that have not ended.
fn members(ranks: &[Rank]) -> Vec<Member> {
    let mut members = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((state, group)) = state_and_group(&stat) else { continue };
        let rank = ranks.iter().find(|rank| rank.child.id() == group).map(|rank| rank.number);
        if let Some(rank) = rank
            && !matches!(state, 'Z' | 'X' | 'x')
        {
            members.push(Member { rank, pid, state });
        }
    }
    members
}

/// Fields 3 and 5 of proc_pid_stat(5); the name before them may hold anything.
fn state_and_group(stat: &str) -> Option<(char, u32)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}
