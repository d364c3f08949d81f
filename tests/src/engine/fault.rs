//! What goes wrong on purpose: on which rank, in which step, at which point of it, and what. As text,
//! `rank=1,step=6,at=logits,skip`.

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// On this rank.
    pub rank: u32,
    /// In this step; 0 is what comes before the first.
    pub step: u32,
    /// Right before this.
    pub at: Point,
    /// A kill or a stop comes so much later, while the rank goes on.
    pub after: Duration,
    /// What.
    pub what: What,
}

/// Where in an engine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before ranks meet.
    Form,
    /// In a step of a backend's set-up, on which ranks vote.
    Vote,
    /// The note of the engine's state.
    State,
    /// An all-reduce.
    Attn,
    /// An all-to-all in the other group.
    Experts,
    /// A reduce-scatter in the other group.
    Combine,
    /// An all-gather.
    Logits,
    /// A broadcast.
    Sampled,
    /// Inside the backend, after the call has been recorded.
    Wire,
    /// The capture of a graph.
    Capture,
    /// Its end.
    Commit,
    /// A replay.
    Replay,
    /// The goodbye.
    Close,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The process is killed.
    Kill,
    /// It is stopped, and continued so much later.
    Stop(Duration),
    /// It sleeps.
    Delay(Duration),
    /// It sleeps, and its watchdog hangs in its next word, as if nobody read the log.
    Freeze(Duration),
    /// It does something else.
    Change(Change),
}

/// What a rank does instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Not this.
    Skip,
    /// This twice.
    Extra,
    /// It with more elements.
    Size,
    /// It with another element type.
    Dtype,
    /// It with another reduction.
    Reduce,
    /// It from another root.
    Root,
    /// A call of another place in the program.
    Path,
    /// It notes another state.
    Drift,
    /// First the other group's call.
    Swap,
    /// It drops its groups and ends.
    Leave,
    /// It fails.
    Fail,
    /// It waits until somebody ends that.
    Hang,
    /// Another graph.
    Other,
    /// The calls of the graph, eagerly.
    Eager,
    /// It, behind other work of its device that takes seconds.
    Busy,
}

const POINTS: [(&str, Point); 13] = [
    ("form", Point::Form),
    ("vote", Point::Vote),
    ("state", Point::State),
    ("attn", Point::Attn),
    ("experts", Point::Experts),
    ("combine", Point::Combine),
    ("logits", Point::Logits),
    ("sampled", Point::Sampled),
    ("wire", Point::Wire),
    ("capture", Point::Capture),
    ("commit", Point::Commit),
    ("replay", Point::Replay),
    ("close", Point::Close),
];

const CHANGES: [(&str, Change); 15] = [
    ("skip", Change::Skip),
    ("extra", Change::Extra),
    ("size", Change::Size),
    ("dtype", Change::Dtype),
    ("reduce", Change::Reduce),
    ("root", Change::Root),
    ("path", Change::Path),
    ("drift", Change::Drift),
    ("swap", Change::Swap),
    ("leave", Change::Leave),
    ("fail", Change::Fail),
    ("hang", Change::Hang),
    ("other", Change::Other),
    ("eager", Change::Eager),
    ("busy", Change::Busy),
];

impl Point {
    /// As faults and sites are written.
    pub fn name(self) -> &'static str {
        POINTS.iter().find(|(_, point)| *point == self).map_or("", |(name, _)| name)
    }
}

impl std::str::FromStr for Fault {
    type Err = String;

    /// Reads `rank=1,step=6,at=logits,skip`; times are milliseconds, `delay=300`, `kill,after=50`.
    fn from_str(text: &str) -> Result<Fault, String> {
        let (mut rank, mut step, mut at, mut what) = (None, 0, None, None);
        let mut after = Duration::ZERO;
        for word in text.split(',') {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let number = || value.parse::<u32>().map_err(|e| format!("`{word}` of a fault: {e}"));
            let time = || number().map(|ms| Duration::from_millis(ms.into()));
            match key {
                "rank" => rank = Some(number()?),
                "step" => step = number()?,
                "at" => at = find(&POINTS, value),
                "after" => after = time()?,
                "kill" => what = Some(What::Kill),
                "stop" => what = Some(What::Stop(time()?)),
                "delay" => what = Some(What::Delay(time()?)),
                "freeze" => what = Some(What::Freeze(time()?)),
                _ => what = find(&CHANGES, key).map(What::Change),
            }
        }
        match (rank, at, what) {
            (Some(rank), Some(at), Some(what)) => Ok(Fault { rank, step, at, after, what }),
            _ => Err(format!("`{text}` is no fault: write `rank=1,step=6,at=logits,skip`")),
        }
    }
}

fn find<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

/// The faults of one rank.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Those of `rank`.
    pub fn of(rank: u32, all: &[Fault]) -> Faults {
        Faults(all.iter().filter(|fault| fault.rank == rank).cloned().collect())
    }

    /// The rank has come to a point of a step: what happens to its process happens, and what it is to
    /// do otherwise is returned.
    pub fn at(&self, point: Point, step: u32) -> Option<Change> {
        let here = self.0.iter().filter(|fault| (fault.at, fault.step) == (point, step));
        let mut change = None;
        for fault in here {
            match fault.what {
                What::Change(what) => change = Some(what),
                What::Kill => later(fault.after, || signal(Signal::KILL)),
                What::Stop(time) => later(fault.after, move || stop(time)),
                What::Delay(time) => std::thread::sleep(time),
                What::Freeze(time) => {
                    IS_FROZEN.store(true, Relaxed);
                    std::thread::sleep(time);
                }
            }
        }
        change
    }
}

fn later(after: Duration, what: impl FnOnce() + Send + 'static) {
    if after.is_zero() {
        return what();
    }
    std::thread::spawn(move || {
        std::thread::sleep(after);
        what();
    });
}

/// Stops this process; a child lets it go on.
fn stop(time: Duration) {
    let script = format!("sleep {}; kill -CONT {}", time.as_secs_f64(), std::process::id());
    let mut child = Command::new("sh").args(["-c", &script]).spawn().expect("there is a shell");
    signal(Signal::STOP);
    // It may have been let go on by a person.
    let _ = child.try_wait();
}

fn signal(signal: Signal) {
    kill_process(getpid(), signal).expect("a process may signal itself");
}

static IS_FROZEN: AtomicBool = AtomicBool::new(false);

/// Where log lines go: to stderr, which blocks a watchdog that is to be frozen.
pub fn log() -> impl Write {
    let is_watchdog = std::thread::current().name() == Some("crossover-watch");
    while is_watchdog && IS_FROZEN.load(Relaxed) {
        std::thread::park();
    }
    std::io::stderr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_as_it_is_written() {
        let fault: Fault = "rank=1,step=6,at=logits,skip".parse().expect("it is one");
        let what = What::Change(Change::Skip);
        let after = Duration::ZERO;
        assert_eq!(fault, Fault { rank: 1, step: 6, at: Point::Logits, after, what });
        let fault: Fault = "rank=0,at=form,delay=20".parse().expect("it is one");
        assert_eq!((fault.step, fault.what), (0, What::Delay(Duration::from_millis(20))));
        assert!("rank=0,at=nowhere,kill".parse::<Fault>().is_err());
    }

    #[test]
    fn only_the_own_faults_at_this_point_count() {
        let all = ["rank=1,step=6,at=logits,skip".parse().expect("it is one")];
        assert_eq!(Faults::of(0, &all).at(Point::Logits, 6), None);
        let own = Faults::of(1, &all);
        assert_eq!(own.at(Point::Logits, 5), None);
        assert_eq!(own.at(Point::Attn, 6), None);
        assert_eq!(own.at(Point::Logits, 6), Some(Change::Skip));
    }
}
