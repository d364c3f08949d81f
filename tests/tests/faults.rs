//! Ranks as processes that are killed, stopped, missing, doubled or misled: each ends in one
//! sentence on every rank, the right exit code, inside the deadline, and leaves nothing behind.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crossover_tests::data::Rng;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The ranks of one job, each with a stderr of its own.
struct Job {
    ranks: Vec<Child>,
    /// Rendezvous and, unless said otherwise, shared memory live here.
    folder: TempDir,
}

/// How one rank ended.
#[derive(Debug)]
struct End {
    code: Option<i32>,
    stderr: String,
}

impl Job {
    /// Starts ranks of these ids; `set` adds variables to one of them, by position.
    fn start(
        ids: &[u32],
        world: u32,
        seconds: &str,
        set: impl Fn(usize) -> Vec<(String, String)>,
    ) -> Job {
        let folder = TempDir::new_in("/dev/shm").expect("a folder in shared memory");
        let ranks = ids.iter().enumerate().map(|(at, id)| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_rank"));
            command.arg(seconds).stdout(Stdio::piped()).stderr(Stdio::piped());
            for (name, _) in
                std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("CROSSOVER_"))
            {
                command.env_remove(name);
            }
            command
                .env("CROSSOVER_RANK", id.to_string())
                .env("CROSSOVER_WORLD_SIZE", world.to_string())
                .env("CROSSOVER_LOCAL_RANK", id.to_string())
                .env("CROSSOVER_LOCAL_WORLD_SIZE", world.to_string())
                .env("CROSSOVER_JOB", "faults")
                .env("CROSSOVER_RENDEZVOUS", format!("unix:{}/meet", folder.path().display()))
                .env("CROSSOVER_SHM_DIR", shm(folder.path()))
                .env("CROSSOVER_CALL_TIMEOUT", "10s")
                .envs(set(at));
            std::fs::create_dir_all(shm(folder.path())).expect("a folder");
            command.spawn().expect("the rank starts")
        });
        Job { ranks: ranks.collect(), folder }
    }

    /// Waits until every rank has formed the group.
    fn ready(&mut self) {
        for rank in &mut self.ranks {
            let mut line = String::new();
            let stdout = rank.stdout.as_mut().expect("piped");
            // One byte at a time: what follows stays in the pipe.
            BufReader::with_capacity(1, stdout).read_line(&mut line).expect("a line");
            assert_eq!(line, "ready\n", "the group forms");
        }
    }

    fn signal(&self, at: usize, signal: Signal) {
        let pid = Pid::from_child(&self.ranks[at]);
        kill_process(pid, signal).expect("the rank is there");
    }

    /// Waits for all to end, kills what has not by the limit, and says how each ended.
    fn end(mut self, limit: Duration) -> Vec<End> {
        let start = Instant::now();
        let mut late = Vec::new();
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            while rank.try_wait().expect("a child").is_none() {
                if start.elapsed() > limit {
                    late.push(at);
                    rank.kill().expect("a child");
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let ends: Vec<End> = self
            .ranks
            .iter_mut()
            .map(|rank| {
                let code = rank.wait().expect("a child").code();
                let mut stderr = String::new();
                rank.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
                End { code, stderr }
            })
            .collect();
        assert!(late.is_empty(), "not ended after {limit:?}: {late:?} of {ends:#?}");
        let left: Vec<_> = std::fs::read_dir(shm(self.folder.path()))
            .map(|entries| entries.flatten().map(|e| e.file_name()).collect())
            .unwrap_or_default();
        assert!(left.is_empty(), "left behind in shared memory: {left:?}");
        ends
    }
}

fn shm(folder: &Path) -> String {
    folder.join("shm").display().to_string()
}

fn nothing(_: usize) -> Vec<(String, String)> {
    Vec::new()
}

fn var(name: &str, value: impl ToString) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_string())]
}

/// Every rank but those excepted ends with this code and a single line that has these words.
fn assert_ends(ends: &[End], except: &[usize], code: i32, words: &[&str]) {
    for (at, end) in ends.iter().enumerate().filter(|(at, _)| !except.contains(at)) {
        assert_eq!(end.code, Some(code), "rank {at}: {ends:#?}");
        assert_eq!(end.stderr.lines().count(), 1, "rank {at}: {ends:#?}");
        for word in words {
            assert!(end.stderr.contains(word), "rank {at} does not say `{word}`: {ends:#?}");
        }
    }
}

#[test]
fn a_killed_rank_is_named_by_all_others_twenty_times() {
    let mut rng = Rng::new(20, 0);
    for round in 0..20 {
        let world = [2, 3, 4][round % 3];
        let ids: Vec<u32> = (0..world).collect();
        let mut job = Job::start(&ids, world, "60", nothing);
        job.ready();
        std::thread::sleep(Duration::from_micros(rng.below(60_000)));
        let victim = rng.below(u64::from(world)) as usize;
        job.signal(victim, Signal::KILL);
        let ends = job.end(Duration::from_secs(9));
        let name = format!("rank {victim} was lost");
        assert_ends(&ends, &[victim], 4, &[&name]);
    }
}

#[test]
fn a_rank_stopped_for_three_seconds_under_a_deadline_of_ten_goes_on() {
    let mut job = Job::start(&[0, 1, 2], 3, "4", nothing);
    job.ready();
    std::thread::sleep(Duration::from_millis(300));
    job.signal(1, Signal::STOP);
    std::thread::sleep(Duration::from_secs(3));
    job.signal(1, Signal::CONT);
    for end in job.end(Duration::from_secs(60)) {
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_rank_stopped_beyond_the_deadline_is_named() {
    let mut job = Job::start(&[0, 1, 2], 3, "60", |_| var("CROSSOVER_CALL_TIMEOUT", "1s"));
    job.ready();
    job.signal(2, Signal::STOP);
    std::thread::sleep(Duration::from_millis(2500));
    job.signal(2, Signal::CONT);
    let ends = job.end(Duration::from_secs(20));
    assert_ends(&ends, &[2], 4, &["still waiting for rank 2"]);
    assert_eq!(ends[2].code, Some(4), "the late one learns that the group has ended: {ends:#?}");
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let start = Instant::now();
    let ends = Job::start(&[0, 1, 3], 4, "1", |_| var("CROSSOVER_FORM_TIMEOUT", "2s"))
        .end(Duration::from_secs(15));
    assert_ends(&ends, &[], 4, &["still waiting for rank 2"]);
    // Ranks ask who is missing when a quarter of their time is left.
    assert!(start.elapsed() >= Duration::from_millis(1400), "{:?}", start.elapsed());
}

#[test]
fn two_processes_of_one_rank_are_both_named() {
    let ends = Job::start(&[0, 1, 1], 3, "1", |_| var("CROSSOVER_FORM_TIMEOUT", "20s"))
        .end(Duration::from_secs(15));
    assert_ends(&ends, &[], 2, &["two processes are rank 1"]);
}

#[test]
fn a_port_in_use_is_told_to_every_rank() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp://{}", taken.local_addr().expect("bound"));
    let ends = Job::start(&[0, 1, 2], 3, "1", |_| {
        let mut set = var("CROSSOVER_RENDEZVOUS", &address);
        set.extend(var("CROSSOVER_FORM_TIMEOUT", "3s"));
        set
    })
    .end(Duration::from_secs(20));
    assert!(ends.iter().all(|e| matches!(e.code, Some(2 | 4))), "{ends:#?}");
    assert!(ends[0].stderr.contains("in use"), "{ends:#?}");
    let port = address.trim_start_matches("tcp://");
    assert!(ends.iter().all(|e| e.stderr.contains(port)), "{ends:#?}");
    assert!(ends.iter().all(|e| e.stderr.lines().count() == 1), "{ends:#?}");
}

#[test]
fn a_policy_that_names_a_backend_that_nobody_knows() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = "schema = 1\n[rule.fast]\nmatch = { op = \"all_reduce\" }\nchain = [ { use = \"icp/one_shot_push\" } ]\n";
    std::fs::write(file.path(), text).expect("written");
    // On one rank only: the others are told, rather than left waiting.
    let ends = Job::start(&[0, 1, 2], 3, "1", |at| match at {
        1 => var("CROSSOVER_POLICY", file.path().display()),
        _ => Vec::new(),
    })
    .end(Duration::from_secs(20));
    for end in &ends {
        assert_eq!(end.code, Some(2), "{ends:#?}");
        for word in ["icp", ":4:", "did you mean `ipc`"] {
            assert!(end.stderr.contains(word), "no `{word}`: {ends:#?}");
        }
    }
    assert!(ends[0].stderr.contains("rank 1 could not read its settings and policy"), "{ends:#?}");
}

#[test]
fn policies_that_differ_are_named_with_their_files() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = "schema = 1\n[rule.mine]\nmatch = { op = \"all_reduce\" }\nchain = [ { use = \"host/two_shot\" } ]\n";
    std::fs::write(file.path(), text).expect("written");
    let ends = Job::start(&[0, 1], 2, "1", |at| match at {
        1 => var("CROSSOVER_POLICY", file.path().display()),
        _ => Vec::new(),
    })
    .end(Duration::from_secs(20));
    let place = format!("{}:2", file.path().display());
    assert_ends(&ends, &[], 2, &["ranks disagree on the policy", "rule `mine`", &place]);
    assert_eq!(ends[0].stderr, ends[1].stderr);
}

#[test]
fn a_forced_backend_that_refuses_is_an_error_on_every_rank() {
    let ends = Job::start(&[0, 1], 2, "1", |at| {
        let mut set = var("CROSSOVER_USE", "host/two_shot");
        if at == 1 {
            set.extend(var("CROSSOVER_SHM_DIR", "/nowhere/at/all"));
        }
        set
    });
    let ends = ends.end(Duration::from_secs(20));
    // Rank 0 makes the memory: rank 1's folder is not asked for, so the group forms.
    assert!(ends.iter().all(|e| e.code == Some(0)), "{ends:#?}");

    let ends = Job::start(&[0, 1], 2, "1", |_| {
        let mut set = var("CROSSOVER_USE", "host/two_shot");
        set.extend(var("CROSSOVER_SHM_DIR", "/nowhere/at/all"));
        set
    })
    .end(Duration::from_secs(20));
    assert_ends(
        &ends,
        &[],
        3,
        &["`host/two_shot` was asked for by CROSSOVER_USE", "/nowhere/at/all"],
    );
    assert_eq!(ends[0].stderr, ends[1].stderr);
}

/// A tmpfs of the test's own; `None`, said in words, where the test may not mount.
struct Mount(TempDir);

impl Mount {
    fn new(options: &str) -> Option<Mount> {
        let folder = TempDir::new().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            let why = "SKIPPED: this test mounts a tmpfs, which needs root";
            std::io::Write::write_all(&mut std::io::stderr(), why.as_bytes()).expect("stderr");
            return None;
        }
        Some(Mount(folder))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn shared_memory_of_one_mebibyte() {
    let Some(mount) = Mount::new("size=1m") else { return };
    let dir = mount.0.path().display().to_string();
    let ends = Job::start(&[0, 1], 2, "1", |_| var("CROSSOVER_SHM_DIR", &dir))
        .end(Duration::from_secs(20));
    assert_ends(&ends, &[], 3, &["no backend is available", &dir, "--shm-size", "memfd"]);
    assert_eq!(ends[0].stderr, ends[1].stderr);
    // And what the sentence advises works.
    let ends = Job::start(&[0, 1], 2, "0.2", |_| var("CROSSOVER_SHM_DIR", "memfd"))
        .end(Duration::from_secs(20));
    assert!(ends.iter().all(|e| e.code == Some(0)), "{ends:#?}");
}

#[test]
fn shared_memory_that_cannot_be_written() {
    let Some(mount) = Mount::new("ro") else { return };
    let dir = mount.0.path().display().to_string();
    let ends = Job::start(&[0, 1], 2, "1", |_| var("CROSSOVER_SHM_DIR", &dir))
        .end(Duration::from_secs(20));
    assert_ends(&ends, &[], 3, &["no backend is available", &dir, "ead-only"]);
    assert_eq!(ends[0].stderr, ends[1].stderr);
}
