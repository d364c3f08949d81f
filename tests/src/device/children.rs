//! Tests in processes of their own: this program again, told which test and which rank.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Stand, Target, stand};

/// A test's body.
type Body = fn(&Stand, &Target);

/// Says what a process is among others.
const SEAT: &str = "CROSSOVER_TEST_SEAT";
/// What it says where ranks are the process's threads.
const THREADS: &str = "threads";
/// How long a process may take. A group whose ranks wait for each other ends sooner.
const LIMIT: Duration = Duration::from_secs(300);
/// Ranks of all tests share one device, whose blocks must all run at the same time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// The one that a person or a tool started.
    Here,
    /// Started for one test, whose ranks are its threads.
    Threads,
    /// Started for one rank of one test.
    Process {
        /// Which.
        rank: u32,
        /// Of how many.
        world: u32,
        /// Where they meet.
        folder: PathBuf,
    },
}

impl Seat {
    pub(super) fn read() -> Seat {
        let Ok(text) = std::env::var(SEAT) else { return Seat::Here };
        let mut words = text.splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match (number(), number()) {
            (Some(rank), Some(world)) => {
                let folder = PathBuf::from(words.next().unwrap_or_default());
                Seat::Process { rank, world, folder }
            }
            _ => Seat::Threads,
        }
    }
}

/// Runs a test whose ranks are threads. `name` is its path, as the harness knows it, behind the name
/// of the test program.
///
/// # Panics
///
/// If the test fails.
pub fn as_threads(name: &str, target: &'static str, body: Body) {
    let Some(stand) = here() else { return };
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Target::parse(target);
    match stand.seat() {
        Seat::Here if !stand.is_emulated() => {
            await_all(vec![start(stand, name, THREADS)]);
        }
        _ => body(stand, &target),
    }
}

/// Runs a test whose ranks are processes, in groups of several sizes.
///
/// # Panics
///
/// If the test fails.
pub fn as_processes(name: &str, target: &'static str, body: Body) {
    let Some(stand) = here() else { return };
    let target = Target::parse(target);
    if *stand.seat() != Seat::Here {
        return body(stand, &target);
    }
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for world in stand.scale(vec![2, 3], vec![2, 3, 4, 5, 8]) {
        let folder = tempfile::tempdir().expect("a folder to meet in");
        let seat = |rank| format!("{rank} {world} {}", folder.path().display());
        await_all((0..world).map(|rank| start(stand, name, &seat(rank))).collect());
    }
}

/// The device, or a sentence on stderr about why tests skip.
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn here() -> Option<&'static Stand> {
    match Stand::find() {
        Ok(stand) => Some(stand),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

struct Started {
    what: String,
    child: Child,
    said: Vec<JoinHandle<String>>,
}

fn start(stand: &Stand, name: &str, seat: &str) -> Started {
    let (_, test) = name.split_once("::").unwrap_or(("", name));
    let program: PathBuf = std::env::current_exe().expect("this program has a file");
    let mut command = Command::new(program);
    // All have the same images, whatever is edited meanwhile.
    if let Some(folder) = stand.kernels() {
        command.env(stand::KERNELS, folder);
    }
    if seat == THREADS {
        // Else streams of several ranks share a queue, where one's launch stands behind another's
        // kernel, which waits for it. Processes have few enough each, and the device has not that many for all.
        command.env("CUDA_DEVICE_MAX_CONNECTIONS", "32");
    }
    let mut child = command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(SEAT, seat)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program can be started again");
    let read = |mut from: Box<dyn Read + Send>| {
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = from.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let said = vec![
        read(Box::new(child.stdout.take().expect("it is piped"))),
        read(Box::new(child.stderr.take().expect("it is piped"))),
    ];
    Started { what: format!("{test} ({seat})"), child, said }
}

/// Waits for all, ends those that take too long, and fails with what was said if one failed.
fn await_all(mut all: Vec<Started>) {
    let began = Instant::now();
    let mut wrong = Vec::new();
    for Started { what, child, said } in &mut all {
        let status = await_one(child, began + LIMIT);
        let said: Vec<String> =
            said.drain(..).map(|text| text.join().unwrap_or_default()).collect();
        match status {
            Some(status) if status.success() => {}
            Some(status) => wrong.push(format!("{what}: {status}\n{}", said.concat())),
            None => wrong.push(format!("{what}: took over {LIMIT:?}\n{}", said.concat())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn await_one(child: &mut Child, until: Instant) -> Option<ExitStatus> {
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
