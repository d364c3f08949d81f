//! How a job ended, and why.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crossover_core::bootstrap::ranks_in_words;

use super::signals::CAUGHT;

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What a shell would return for the first rank that failed: its exit code, or 128 and the
    /// number of the signal that ended it; for a job that was stopped, 128 and the number of the
    /// signal that asked for it, however its ranks ended then; else 0.
    pub code: u8,
    /// Ranks that failed by themselves: the first, and those that did before the others were told to
    /// end.
    pub failures: Vec<RankFailure>,
    /// Was it stopped? Then no rank has failed.
    pub stop: Option<Stop>,
    /// Ranks that were there still when they were told to end.
    pub left: Vec<Left>,
    /// The job's name, which its ranks were told.
    pub job: String,
    /// Where lines of ranks could not be written to standard output: what the system said of the first.
    /// A reader that has gone away has lost nothing.
    pub lost: Option<String>,
}

/// A rank that failed.
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

/// This process was asked to end the job, and no rank had failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The signal that asked for it.
    pub signal: u8,
    /// Who sent that.
    pub sender: Sender,
    /// Ranks that had not ended in time, or at a second SIGINT, and were killed.
    pub killed: Vec<u32>,
}

/// Who sent a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Nobody that has a number here: a process of another pid namespace.
    Outside,
    /// A process.
    Process {
        /// Its number.
        pid: u32,
        /// The name of its program; empty if it has ended.
        name: String,
    },
    /// The terminal: a key was typed there, or it is gone.
    Terminal,
    /// An alarm of this process, which was set before its program was started.
    Alarm,
}

/// A rank that was there still when it was told to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Which.
    pub rank: u32,
    /// Its processes that ran.
    pub running: Vec<u32>,
    /// Its processes that were stopped, by a signal or a debugger.
    pub stopped: Vec<u32>,
}

impl Outcome {
    /// What the job's end is due to, in a sentence: who failed first, who else did, and who was
    /// stopped then; or who stopped the job. None if all went well.
    pub fn cause(&self) -> Option<String> {
        if let Some(stop) = &self.stop {
            return Some(stop.to_string());
        }
        let (first, others) = self.failures.split_first()?;
        let mut sentence = first.to_string();
        // Ranks that lose a peer fail with a code and say so; who was killed cannot.
        for other in others.iter().filter(|other| matches!(other.how, Ending::Signal(_))) {
            sentence += &format!("; {other} soon after");
        }
        for Left { rank, stopped, .. } in &self.left {
            if let Some(pid) = stopped.first() {
                sentence += &format!(
                    "; rank {rank} (pid {pid}) was stopped by a signal or a debugger, did nothing \
                     any more, and was ended with the job"
                );
            }
        }
        Some(sentence)
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
    pub(super) fn failed(status: ExitStatus) -> Option<Self> {
        match (status.code(), status.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(Ending::Code(code as u8)),
            (None, signal) => Some(Ending::Signal(signal.unwrap_or_default() as u8)),
        }
    }
}

impl Sender {
    /// The process of this number.
    pub(super) fn process(pid: u32) -> Sender {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Sender::Process { pid, name: name.trim_end().to_owned() }
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

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stop { signal, sender, killed } = self;
        write!(f, "the job was stopped: {} came from {sender}", name(*signal))?;
        match killed.as_slice() {
            [] => Ok(()),
            killed => {
                let were = if killed.len() == 1 { "was" } else { "were" };
                write!(f, "; {} had not ended and {were} killed", ranks_in_words(killed))
            }
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sender::Outside => f.write_str("a process outside of this pid namespace"),
            Sender::Process { pid, name } if name.is_empty() => write!(f, "process {pid}"),
            Sender::Process { pid, name } => write!(f, "process {pid} (`{name}`)"),
            Sender::Terminal => f.write_str("the terminal"),
            Sender::Alarm => f.write_str("an alarm that was set before the program was started"),
        }
    }
}

/// Of a signal that stops jobs.
fn name(signal: u8) -> String {
    let known = CAUGHT.into_iter().find(|(known, _)| known.as_raw() == i32::from(signal));
    known.map_or_else(|| format!("signal {signal}"), |(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_names_who_failed_first_who_was_killed_and_who_was_stopped() {
        let failed = |rank, how| RankFailure { rank, pid: 10 + rank, how };
        let left = |rank, stopped: &[u32]| Left { rank, running: vec![], stopped: stopped.into() };
        let outcome = Outcome {
            code: 4,
            failures: vec![
                failed(2, Ending::Code(4)),
                failed(0, Ending::Code(4)),
                failed(3, Ending::Signal(9)),
            ],
            stop: None,
            left: vec![left(1, &[41, 42]), left(4, &[])],
            job: "j".to_owned(),
            lost: None,
        };
        let expected = "rank 2 (pid 12) ended with code 4; rank 3 (pid 13) was ended by signal 9 \
                        soon after; rank 1 (pid 41) was stopped by a signal or a debugger, did \
                        nothing any more, and was ended with the job";
        assert_eq!(outcome.cause().as_deref(), Some(expected));
        assert_eq!(Outcome { failures: vec![], ..outcome }.cause(), None);
    }

    #[test]
    fn a_stop_names_who_asked_for_it() {
        let said = |signal: u8, sender, killed: &[u32]| {
            Stop { signal, sender, killed: killed.into() }.to_string()
        };
        let process = |name: &str| Sender::Process { pid: 7, name: name.to_owned() };
        assert_eq!(
            said(15, process("timeout"), &[]),
            "the job was stopped: SIGTERM came from process 7 (`timeout`)"
        );
        assert_eq!(
            said(2, Sender::Terminal, &[1]),
            "the job was stopped: SIGINT came from the terminal; rank 1 had not ended and \
             was killed"
        );
        assert_eq!(
            said(14, Sender::Alarm, &[]),
            "the job was stopped: SIGALRM came from an alarm that was set before the program was started"
        );
        assert!(
            said(1, process(""), &[0, 2]).ends_with(
                "SIGHUP came from process 7; ranks 0 and 2 had not ended and were killed"
            )
        );
    }
}
