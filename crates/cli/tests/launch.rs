//! `crossover launch` over ranks that are sent signals: what it says, how it ends, what it leaves.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A job whose ranks make calls until they are ended.
struct Running {
    launcher: Child,
    folder: tempfile::TempDir,
}

impl Running {
    /// Starts two ranks, as a shell runs each by `run`, in which PERF stands for the program, and waits until their group is formed.
    fn start(run: &str) -> Running {
        let folder = tempfile::tempdir().expect("a folder");
        for name in FOLDERS {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let endless = "perf all_reduce -b 1K -e 1K --iters 1000000000";
        let script = run.replace("PERF", &format!("{} {endless}", env!("CARGO_BIN_EXE_crossover")));
        let launcher = Command::new(env!("CARGO_BIN_EXE_crossover"))
            .args(["launch", "-n", "2", "--", "sh", "-c", &script])
            .env("CROSSOVER_RECORD_DIR", folder.path().join("rings"))
            .env("CROSSOVER_DUMP_DIR", folder.path().join("dumps"))
            .env("XDG_RUNTIME_DIR", folder.path().join("run"))
            .env("CROSSOVER_CALL_TIMEOUT", "3s")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let running = Running { launcher, folder };
        let until = Instant::now() + Duration::from_secs(60);
        while running.left("rings").len() < 2 {
            assert!(Instant::now() < until, "no rank has a ring");
            std::thread::sleep(Duration::from_millis(20));
        }
        running
    }

    fn left(&self, folder: &str) -> Vec<String> {
        names(&self.folder.path().join(folder))
    }

    fn signal(&self, signal: Signal) {
        send(self.launcher.id(), signal);
    }

    /// The process whose number the rank wrote down.
    fn rank(&self, rank: u32) -> u32 {
        let path = self.folder.path().join(format!("pid.{rank}"));
        fs::read_to_string(path).expect("written before it began").trim().parse().expect("a number")
    }

    /// Its end, and the folder of what it left.
    fn end(self) -> (Output, tempfile::TempDir) {
        (self.launcher.wait_with_output().expect("it ends"), self.folder)
    }
}

const FOLDERS: [&str; 3] = ["rings", "dumps", "run"];

/// The rank is the shell's process, whose number it tells first. Some signals would leave a core.
const PLAIN: &str =
    "ulimit -c 0; echo $$ > $CROSSOVER_RECORD_DIR/../pid.$CROSSOVER_RANK; exec PERF";

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).expect("a number");
    kill_process(pid, signal).expect("a process of this test");
}

#[test]
fn a_job_that_is_stopped_has_not_failed() {
    // A rank may take its time: it sees the other go.
    let slow = format!("[ $CROSSOVER_RANK = 0 ] && trap '' TERM; {PLAIN}");
    for (signal, name, run) in [
        (Signal::TERM, "SIGTERM", PLAIN),
        (Signal::INT, "SIGINT", PLAIN),
        (Signal::HUP, "SIGHUP", PLAIN),
        (Signal::QUIT, "SIGQUIT", PLAIN),
        (Signal::USR1, "SIGUSR1", PLAIN),
        (Signal::USR2, "SIGUSR2", PLAIN),
        (Signal::ALARM, "SIGALRM", PLAIN),
        (Signal::TERM, "SIGTERM", &slow),
    ] {
        let job = Running::start(run);
        job.signal(signal);
        let (output, folder) = job.end();
        assert_eq!(
            output.status.code(),
            Some(128 + signal.as_raw()),
            "{:?}",
            output.status.signal()
        );
        let said = String::from_utf8_lossy(&output.stderr);
        let me = std::process::id();
        let stop = format!("the job was stopped: {name} came from process {me} (`");
        assert_eq!(said.lines().filter(|line| line.starts_with(&stop)).count(), 1, "{said}");
        assert!(!said.contains("without a goodbye") && !said.contains("says more"), "{said}");
        if run == PLAIN {
            assert_eq!(said.lines().count(), 1, "{said}");
        }
        for left in FOLDERS {
            assert_eq!(names(&folder.path().join(left)), [""; 0], "{name}: {left}");
        }
    }
}

#[test]
fn a_stopped_rank_is_told_of_as_stopped_and_after_who_failed_for_it() {
    let job = Running::start(PLAIN);
    let (first, stopped) = (job.rank(0), job.rank(1));
    send(stopped, Signal::STOP);
    let (output, folder) = job.end();
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr);
    let cause = format!(
        "error: rank 0 (pid {first}) ended with code 4; rank 1 (pid {stopped}) was stopped by a signal or a debugger"
    );
    assert!(said.contains(&cause), "{said}");
    assert!(said.contains("is stopped, by a signal or a debugger"), "{said}");
    assert!(!said.contains("gone without a goodbye"), "{said}");
    // What the rank has told the launcher does not repeat, but for the place.
    let notes: Vec<&str> = said.lines().filter(|line| line.contains("left a dump: ")).collect();
    assert!(matches!(notes[..], [one] if one.contains("crossover diagnose /")), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("in group ")), "{said}");
    let [dump] = &names(&folder.path().join("dumps"))[..] else { panic!("one dump: {said}") };
    let verdict = fs::read_to_string(folder.path().join("dumps").join(dump).join("verdict.txt"));
    assert!(verdict.expect("a dump has one").contains("\nstopped_rank: "), "{said}");
    assert_eq!(names(&folder.path().join("rings")), [""; 0]);
}

#[test]
fn ranks_that_are_ended_with_a_failed_one_are_not_blamed() {
    let job = Running::start(PLAIN);
    send(job.rank(1), Signal::KILL);
    let (output, folder) = job.end();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("(pid ") && said.contains("was ended by signal 9"), "{said}");
    let blames = |line: &str| line.contains("rank 0 (") && line.contains("gone without");
    assert!(!said.lines().any(blames), "{said}");
    assert_eq!(names(&folder.path().join("rings")), [""; 0]);
}

#[test]
fn output_that_cannot_be_written_is_told_once_and_no_success() {
    let launch = |script: &str, to: Stdio| {
        let mut launcher = Command::new(env!("CARGO_BIN_EXE_crossover"));
        launcher.args(["launch", "-n", "2", "--output", "prefixed", "--", "sh", "-c", script]);
        launcher.stdout(to).stderr(Stdio::piped());
        let output = launcher.spawn().expect("it starts").wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a device").into();
    let lost = "error: the output cannot be written: ";
    let (code, said) = launch("echo a; echo b", full());
    assert!(code == Some(1) && said.starts_with(lost) && said.lines().count() == 1, "{said}");
    // Ranks' own failure is the job's.
    let (code, said) = launch("echo a; exit 7", full());
    assert!(code == Some(7) && said.matches(lost).count() == 1, "{said}");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert_eq!(launch("echo a; echo b", writer.into()), (Some(0), String::new()));
}
