//! The ranks of one job: engines as processes, each with a stderr of its own, and what is left when all
//! have ended by themselves.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossover_tests::device::Stand;
use tempfile::TempDir;

use super::ended::{End, Ended, dumps, repeated};

/// How long a job may take on a machine that is busy; deadlines within it are far shorter.
const LIMIT: Duration = Duration::from_secs(60);

/// What is started.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    world: u32,
    /// Arguments of all ranks, or of one.
    arguments: Vec<(Option<u32>, String)>,
    /// Variables of all ranks, or of one.
    set: Vec<(Option<u32>, String, String)>,
}

/// `world` engines that go wrong as `faults` say, separated by spaces: on the device that
/// `CROSSOVER_TEST_DEVICE` names, and else on host memory.
pub(crate) fn engines(world: u32, faults: &str) -> Plan {
    let plan = on_host(world, faults);
    match std::env::var_os("CROSSOVER_TEST_DEVICE") {
        Some(_) => plan.on(Stand::find().as_ref().unwrap_or_else(|why| panic!("{why}"))),
        None => plan,
    }
}

/// The same, on host memory.
pub(crate) fn on_host(world: u32, faults: &str) -> Plan {
    let plan = Plan { world, ..Plan::default() };
    faults.split_whitespace().fold(plan, |plan, fault| plan.with(&format!("--fault {fault}")))
}

/// The same, with the backend whose set-up and links can go wrong.
pub(crate) fn wired(world: u32, faults: &str) -> Plan {
    on_host(world, faults).with("--wire 1")
}

/// The same, on a device, the emulated one if no other is named; `None`, said in words, if there is none.
pub(crate) fn on_device(world: u32, faults: &str) -> Option<Plan> {
    match Stand::find() {
        Ok(stand) => Some(on_host(world, faults).on(stand)),
        Err(why) => {
            skip(why);
            None
        }
    }
}

/// Looks at all of these at the same time: what takes long is waiting.
pub(crate) fn together<T: Sync>(cases: &[T], look: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        let look = &look;
        let cases: Vec<_> = cases.iter().map(|case| scope.spawn(move || look(case))).collect();
        for case in cases {
            if let Err(panic) = case.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Says why a test does nothing.
pub(crate) fn skip(why: &str) {
    let line = format!("skipped: {why}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("stderr");
}

impl Plan {
    /// On the device of this stand, which ranks share, by the backend that `CROSSOVER_TEST_USE` names, or `ipc`.
    fn on(self, stand: &Stand) -> Plan {
        let backend = std::env::var("CROSSOVER_TEST_USE").unwrap_or_else(|_| "ipc".to_owned());
        let mut plan = self.set("device", &stand.name).set("use", backend);
        plan = plan.set("allow_shared_device", 1);
        if let Some(library) = std::env::var_os("CROSSOVER_TEST_NCCL") {
            plan = plan.set("nccl.library", library.display());
        }
        match stand.kernels() {
            Some(folder) => plan.set("ipc.kernels", folder.display()),
            None => plan,
        }
    }

    /// Is data on a device?
    pub(crate) fn is_on_device(&self) -> bool {
        self.set.iter().any(|(_, key, _)| *key == variable("device"))
    }

    /// With more of the engine's options.
    pub(crate) fn with(mut self, options: &str) -> Plan {
        self.arguments.extend(options.split_whitespace().map(|word| (None, word.to_owned())));
        self
    }

    /// With more of them on one rank.
    pub(crate) fn with_on(mut self, rank: u32, options: &str) -> Plan {
        let words = options.split_whitespace();
        self.arguments.extend(words.map(|word| (Some(rank), word.to_owned())));
        self
    }

    /// With this setting on all ranks; later ones win.
    pub(crate) fn set(mut self, key: &str, value: impl ToString) -> Plan {
        self.set.push((None, variable(key), value.to_string()));
        self
    }

    /// With this setting on one rank.
    pub(crate) fn set_on(mut self, rank: u32, key: &str, value: impl ToString) -> Plan {
        self.set.push((Some(rank), variable(key), value.to_string()));
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    ///
    /// If a rank has not ended within the time that all cases keep to, or leaves a file behind.
    #[track_caller]
    pub(crate) fn run(&self) -> Ended {
        self.start().end()
    }

    /// Starts it.
    pub(crate) fn start(&self) -> Job {
        let folder = TempDir::new_in("/dev/shm").expect("a folder in memory");
        let here = |name: &str| folder.path().join(name);
        for name in ["shm", "rings", "dumps"] {
            std::fs::create_dir(here(name)).expect("a folder");
        }
        let name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.trim_start_matches('.').to_owned();
        let ranks = (0..self.world).map(|rank| {
            let mut command = Command::new(engine());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let is_for = |only: &Option<u32>| only.is_none_or(|only| only == rank);
            let arguments = self.arguments.iter().filter(|(only, _)| is_for(only));
            command.args(arguments.map(|(_, word)| word));
            for (name, _) in std::env::vars_os() {
                if name.to_string_lossy().starts_with("CROSSOVER_") {
                    command.env_remove(name);
                }
            }
            command
                .env("CROSSOVER_RANK", rank.to_string())
                .env("CROSSOVER_WORLD_SIZE", self.world.to_string())
                .env("CROSSOVER_LOCAL_RANK", rank.to_string())
                .env("CROSSOVER_LOCAL_WORLD_SIZE", self.world.to_string())
                .env("CROSSOVER_JOB", &name)
                .env("CROSSOVER_RENDEZVOUS", format!("unix:{}", here("meet").display()))
                .env("CROSSOVER_SHM_DIR", here("shm"))
                .env("CROSSOVER_RECORD_DIR", here("rings"))
                .env("CROSSOVER_DUMP_DIR", here("dumps"))
                .env("CROSSOVER_FORM_TIMEOUT", "20s")
                .env("CROSSOVER_CALL_TIMEOUT", "20s")
                .env("CROSSOVER_HANG_TIMEOUT", "20s");
            for (only, key, value) in &self.set {
                if is_for(only) {
                    command.env(key, value);
                }
            }
            Rank::start(command)
        });
        Job { ranks: ranks.collect(), name, folder, is_on_device: self.is_on_device() }
    }
}

/// The program: where it was built, or beside this test on a machine that both were brought to.
fn engine() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_engine"));
    let brought = std::env::current_exe().map(|test| test.with_file_name("engine"));
    if built.exists() { built } else { brought.unwrap_or(built) }
}

fn variable(key: &str) -> String {
    format!("CROSSOVER_{}", key.to_uppercase().replace('.', "__"))
}

/// Engines that run.
pub(crate) struct Job {
    ranks: Vec<Rank>,
    /// What they are called together.
    pub(crate) name: String,
    folder: TempDir,
    is_on_device: bool,
}

struct Rank {
    child: Child,
    stderr: JoinHandle<String>,
}

impl Rank {
    fn start(mut command: Command) -> Rank {
        let mut child = command.spawn().expect("the engine starts");
        let mut from = child.stderr.take().expect("piped");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = from.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Rank { child, stderr }
    }
}

impl Job {
    /// Waits until all have formed their groups.
    pub(crate) fn ready(&mut self) {
        for rank in &mut self.ranks {
            let mut line = String::new();
            let stdout = rank.child.stdout.as_mut().expect("piped");
            BufReader::with_capacity(1, stdout).read_line(&mut line).expect("a line");
            assert_eq!(line, "ready\n", "the groups form");
        }
    }

    /// Kills all of them at once. Returns where their files were.
    pub(crate) fn kill(mut self) -> TempDir {
        for rank in &mut self.ranks {
            rank.child.kill().expect("a child");
        }
        for rank in &mut self.ranks {
            rank.child.wait().expect("a child");
        }
        self.folder
    }

    /// Waits for all to end.
    ///
    /// # Panics
    ///
    /// If one has not ended after a time that every case keeps to, a file is left behind, or a rank says
    /// something twice in one sentence.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let start = Instant::now();
        let mut late = Vec::new();
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            while rank.child.try_wait().expect("a child").is_none() {
                if start.elapsed() > LIMIT {
                    late.push(at);
                    rank.child.kill().expect("a child");
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let ends = self.ranks.into_iter().map(|mut rank| {
            let code = rank.child.wait().expect("a child").code();
            End { code, stderr: rank.stderr.join().expect("it reads") }
        });
        let ends = ends.collect();
        let folder = self.folder.path();
        let dumps = dumps(&folder.join("dumps"));
        let ended = Ended { ends, dumps, is_on_device: self.is_on_device };
        assert!(late.is_empty(), "not ended after {LIMIT:?}: {late:?} of {ended:#?}");
        let left = ["shm", "rings"].map(|name| files(&folder.join(name))).concat();
        assert!(left.is_empty(), "left behind: {left:?}; {ended:#?}");
        for line in ended.ends.iter().flat_map(|end| end.stderr.lines()) {
            assert_eq!(repeated(line), None, "said twice in one line: {line}");
        }
        ended
    }
}

/// What is in a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect()
}
