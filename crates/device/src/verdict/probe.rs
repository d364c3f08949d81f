//! Trying a pair out, within a time. A machine whose peers do not work may well never answer.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::Pair;
use super::observation::Observation;

/// Tries a pair out.
pub trait Probe: Send + Sync {
    /// What was seen of the pair. Returns by the deadline, whatever the machine does.
    ///
    /// # Errors
    /// One sentence why nothing was seen.
    fn observe(&self, pair: &Pair, deadline: Instant) -> Result<Observation, String>;
}

/// A probe in this process, on a thread that is left to itself at the deadline.
///
/// For what hangs on the device only: a thread that never ends keeps its memory. Use
/// [`ChildProbe`] for machines that are not trusted.
pub struct ThreadProbe<F> {
    observe: Arc<F>,
}

impl<F> ThreadProbe<F>
where
    F: Fn(&Pair) -> Result<Observation, String> + Send + Sync + 'static,
{
    /// A probe that calls `observe`, which may take for ever.
    pub fn new(observe: F) -> Self {
        Self { observe: Arc::new(observe) }
    }
}

impl<F> Probe for ThreadProbe<F>
where
    F: Fn(&Pair) -> Result<Observation, String> + Send + Sync + 'static,
{
    fn observe(&self, pair: &Pair, deadline: Instant) -> Result<Observation, String> {
        let (answer, answered) = mpsc::channel();
        let (observe, mine) = (Arc::clone(&self.observe), pair.clone());
        let started = Instant::now();
        let thread = thread::Builder::new().name("p2p-probe".to_owned()).spawn(move || {
            // Nobody listens any more after the deadline.
            let _ = answer.send(observe(&mine));
        });
        thread.map_err(|error| format!("no thread for the probe: {error}"))?;
        match answered.recv_timeout(deadline.saturating_duration_since(started)) {
            Ok(seen) => seen,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(late(started)),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err("the probe panicked".to_owned()),
        }
    }
}

/// A probe in a process of its own, killed at the deadline. The program gets the pair's two UUIDs
/// as its last arguments and writes an [`Observation`] as JSON to its standard output; an exit code
/// that is not 0 fails the probe with what it wrote to its standard error.
pub struct ChildProbe<F> {
    command: F,
}

impl<F: Fn() -> Command + Send + Sync> ChildProbe<F> {
    /// A probe that starts what `command` makes.
    pub fn new(command: F) -> Self {
        Self { command }
    }
}

impl<F: Fn() -> Command + Send + Sync> Probe for ChildProbe<F> {
    fn observe(&self, pair: &Pair, deadline: Instant) -> Result<Observation, String> {
        let started = Instant::now();
        let mut command = (self.command)();
        command.args([&pair.user, &pair.owner]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            format!("{} does not start: {error}", command.get_program().display())
        })?;
        let output = collect(child.stdout.take());
        let complaint = collect(child.stderr.take());
        let Some(status) = wait(&mut child, deadline) else {
            abandon(child);
            return Err(late(started));
        };
        // A grandchild may hold the pipes open: the deadline holds for them too.
        let text = |pipe: mpsc::Receiver<String>| {
            pipe.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .map_err(|_| late(started))
        };
        if !status.success() {
            let complaint = text(complaint).unwrap_or_default();
            let complaint = complaint.trim();
            let last = complaint.lines().next_back().unwrap_or("it said nothing");
            return Err(format!("the probe's process ended with {status}: {last}"));
        }
        serde_json::from_str(&text(output)?)
            .map_err(|error| format!("the probe's process answered no observation: {error}"))
    }
}

/// Reads a pipe to its end, aside.
fn collect(pipe: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (text, collected) = mpsc::channel();
    if let Some(pipe) = pipe {
        let thread = thread::Builder::new().name("p2p-probe-pipe".to_owned());
        // Without a thread the receiver is told that nobody sends.
        let _ = thread.spawn(move || {
            let mut bytes = Vec::new();
            // What a probe has to say is short; one that writes without end is cut off.
            let _ = pipe.take(MOST_OUTPUT).read_to_end(&mut bytes);
            let _ = text.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    collected
}

/// Bytes of output that are read of a child.
const MOST_OUTPUT: u64 = 16 << 20; // size: far above an observation of a few thousand words

fn wait(child: &mut Child, deadline: Instant) -> Option<std::process::ExitStatus> {
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => {
                thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Kills a child without waiting for it: one that is stuck in a driver dies when the driver lets go.
fn abandon(mut child: Child) {
    // An error says that it has ended.
    let _ = child.kill();
    let _ = thread::Builder::new().name("p2p-probe-reap".to_owned()).spawn(move || child.wait());
}

fn late(started: Instant) -> String {
    format!("the probe gave no answer within {:.1} s", started.elapsed().as_secs_f64())
}

/// What the program of a [`ChildProbe`] answers with.
///
/// # Errors
/// If nobody reads it any more.
pub fn answer(to: &mut dyn std::io::Write, seen: &Observation) -> std::io::Result<()> {
    serde_json::to_writer(&mut *to, seen)?;
    to.flush()
}
