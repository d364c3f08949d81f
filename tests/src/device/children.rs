//! Tests in processes of their own: this program again, told which test and which rank.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Stand, Target, stand};

/// A test's body.
pub type Body = fn(&Stand, &Target);

/// Says what a process is among others.
const SEAT: &str = "CROSSOVER_TEST_SEAT";
/// How long a process may take. A group whose ranks wait for each other ends sooner.
const LIMIT: Duration = Duration::from_secs(300);
/// Ranks of all tests share one real device, whose blocks must all run at the same time: a test has it
/// alone. Emulated blocks are threads: tests wait more than they compute, and go on beside each other, all
/// but those that look at the process as a whole.
static DEVICE: RwLock<()> = RwLock::new(());

/// What this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// The one that a person or a tool started.
    Here,
    /// Started for one rank.
    Process {
        /// Which.
        rank: u32,
        /// Of how many.
        world: u32,
        /// The first of several tests to run.
        first: usize,
        /// Where they meet.
        folder: PathBuf,
    },
}

impl Seat {
    pub(super) fn read() -> Seat {
        let Ok(text) = std::env::var(SEAT) else { return Seat::Here };
        let mut words = text.splitn(4, ' ');
        let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
        match (number(), number(), number()) {
            (Some(rank), Some(world), Some(first)) => {
                let folder = PathBuf::from(words.next().unwrap_or_default());
                Seat::Process { rank, world, first: first as usize, folder }
            }
            _ => panic!("{SEAT} is set, and not by this program: {text}"),
        }
    }
}

/// Runs a test whose ranks are threads. Real devices have [`all_in_processes`] instead: freeing memory
/// there waits for the kernels of all threads, and so for ranks that wait for this one.
///
/// # Panics
///
/// If the test fails.
pub fn as_threads(_name: &str, target: &'static str, body: Body) {
    let Some(stand) = emulated() else { return };
    let _beside_others = DEVICE.read().unwrap_or_else(PoisonError::into_inner);
    body(stand, &Target::parse(target));
}

/// The same, for a test that looks at the process as a whole: no other runs meanwhile.
///
/// # Panics
///
/// If the test fails.
pub fn as_threads_alone(target: &'static str, body: Body) {
    let Some(stand) = emulated() else { return };
    let _alone = DEVICE.write().unwrap_or_else(PoisonError::into_inner);
    body(stand, &Target::parse(target));
}

/// Runs a test whose ranks are processes, in groups of two sizes. `name` is its path, as the harness
/// knows it, behind the name of the test program. Real devices have [`all_in_processes`] instead.
///
/// # Panics
///
/// If the test fails.
pub fn as_processes(name: &str, target: &'static str, body: Body) {
    let Some(stand) = emulated() else { return };
    if *stand.seat() != Seat::Here {
        return body(stand, &Target::parse(target));
    }
    let _beside_others = DEVICE.read().unwrap_or_else(PoisonError::into_inner);
    for world in [2, 3] {
        let failed = run_group(stand, name, world, 0);
        assert!(failed.is_none(), "{}", failed.map(|failed| failed.said).unwrap_or_default());
    }
}

/// Runs tests one after the other in the same few processes, a group of each size that the variable
/// `CROSSOVER_TEST_WORLDS` lists, on a real device: to start processes there takes longer than most
/// tests. Those behind one that failed run in new processes.
///
/// # Panics
///
/// If a test fails, once all have run.
pub fn all_in_processes(name: &str, target: &'static str, bodies: &[(&str, Body)]) {
    let Some(stand) = here() else { return };
    if let Seat::Process { first, .. } = stand.seat() {
        for (nth, (name, body)) in bodies.iter().enumerate().skip(*first) {
            tell(&format!("{RUNNING}{nth} {name}"));
            body(stand, &Target::parse(target));
        }
        return;
    }
    if stand.is_emulated() {
        return tell("skipped: emulated, these tests run one by one");
    }
    let _alone = DEVICE.write().unwrap_or_else(PoisonError::into_inner);
    let mut failures = Vec::new();
    for world in worlds() {
        let (mut first, began) = (0, Instant::now());
        while let Some(failed) = run_group(stand, name, world, first) {
            let (name, _) = bodies[failed.nth.unwrap_or(first)];
            failures.push(format!("{name}, {world} ranks:\n{}", failed.said));
            first = failed.nth.unwrap_or(first) + 1;
            if first == bodies.len() {
                break;
            }
        }
        tell(&format!("{world} ranks took {:.1?}", began.elapsed()));
    }
    assert!(failures.is_empty(), "{} failed\n{}", failures.len(), failures.join("\n"));
}

/// What a process says before each of its tests, followed by the test's number.
const RUNNING: &str = "running ";

/// What a process says that kills itself as part of a test, which is the last of its list.
const ON_PURPOSE: &str = "it kills itself on purpose";

/// Ends this process as a crash would: nothing is closed, dropped or said to peers.
///
/// # Panics
///
/// If the system refuses.
pub(super) fn die() -> ! {
    tell(ON_PURPOSE);
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .expect("a process may kill itself");
    unreachable!("it was killed")
}

/// Sizes of groups on a real device.
fn worlds() -> Vec<u32> {
    let text = std::env::var("CROSSOVER_TEST_WORLDS").unwrap_or_else(|_| "2 3 4 5 8".to_owned());
    let number = |word: &str| word.parse().expect("CROSSOVER_TEST_WORLDS lists numbers of ranks");
    text.split_whitespace().map(number).collect()
}

/// The emulated device, or a sentence about why this test skips.
fn emulated() -> Option<&'static Stand> {
    let stand = here()?;
    if !stand.is_emulated() {
        tell("skipped: on a device, in_processes runs this test and its neighbours");
        return None;
    }
    Some(stand)
}

/// The device, or a sentence on stderr about why tests skip.
fn here() -> Option<&'static Stand> {
    Stand::find().as_ref().map_err(|why| tell(&format!("skipped: {why}"))).ok()
}

#[expect(clippy::print_stderr, reason = "a test that skips says so, and a process what it runs")]
fn tell(what: &str) {
    eprintln!("{what}");
}

/// What a group of processes failed with.
struct Failed {
    /// The first test at which one failed, where they run several.
    nth: Option<usize>,
    said: String,
}

/// Runs the test of this name in so many processes, from its `first` part on.
fn run_group(stand: &Stand, name: &str, world: u32, first: usize) -> Option<Failed> {
    let folder = tempfile::tempdir().expect("a folder to meet in");
    let seat = |rank| format!("{rank} {world} {first} {}", folder.path().display());
    await_all((0..world).map(|rank| start(stand, name, &seat(rank))).collect())
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

/// Waits for all, and ends those that take too long; what was said if one failed.
fn await_all(mut all: Vec<Started>) -> Option<Failed> {
    let began = Instant::now();
    let (mut wrong, mut nth) = (Vec::new(), None);
    for Started { what, child, said } in &mut all {
        let status = await_one(child, began + LIMIT);
        let said: Vec<String> =
            said.drain(..).map(|text| text.join().unwrap_or_default()).collect();
        let said = said.concat();
        let why = match status {
            Some(status) if status.success() => continue,
            Some(_) if said.contains(ON_PURPOSE) => continue,
            Some(status) => status.to_string(),
            None => format!("took over {LIMIT:?}"),
        };
        // Where one fails, others may begin the next test and wait there.
        let at = last_run(&said);
        nth = nth.map_or(at, |first: usize| Some(at.map_or(first, |at| at.min(first))));
        wrong.push(format!("{what}: {why}\n{said}"));
    }
    (!wrong.is_empty()).then(|| Failed { nth, said: wrong.join("\n") })
}

/// The number of the test that a process said last.
fn last_run(said: &str) -> Option<usize> {
    let numbers = said.lines().filter_map(|line| line.strip_prefix(RUNNING));
    numbers.filter_map(|rest| rest.split_once(' ')?.0.parse().ok()).next_back()
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
