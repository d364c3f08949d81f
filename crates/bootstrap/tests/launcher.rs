//! Jobs of real processes.

use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossover_bootstrap::launcher::{Ending, Job, Left, Outcome, Output, Sender};
use crossover_bootstrap::{Launch, Options, connect};

/// Not a test by itself: what a rank of this file's jobs does, in a process of its own.
#[test]
fn as_a_rank() {
    let Ok(role) = std::env::var("TEST_ROLE") else { return };
    let launch = Launch::from_env(&|name| std::env::var(name).ok()).unwrap().unwrap();
    let deadline = Duration::from_secs(30);
    let boot = connect(&launch, &Options { deadline, ..Options::default() }).unwrap();
    let file = tempfile::tempfile().unwrap();
    let files = boot.all_gather_fds("pass files", &[file.as_fd()]).unwrap();
    assert_eq!(files.len(), launch.world() as usize);
    match (role.as_str(), launch.rank()) {
        ("one dies", 2) => std::process::abort(),
        ("one dies", _) => {
            let said = boot.all_gather("after", b"x").unwrap_err().to_string();
            assert_eq!(said, "rank 2 was lost at step `after`: connection closed");
        }
        _ => assert_eq!(boot.all_gather("after", b"x").unwrap().len(), launch.world() as usize),
    }
}

fn ranks(world: u32, role: &str) -> Job {
    let me = std::env::current_exe().unwrap();
    Job::new(world, me, ["--exact", "as_a_rank", "--quiet"])
        .variable("TEST_ROLE", role)
        .output(Output::RankZero)
}

fn shell(world: u32, script: &str) -> Job {
    Job::new(world, "sh", ["-c", script]).grace(Duration::from_millis(300))
}

/// Directories that launchers of this process have made.
fn directories() -> Vec<String> {
    let base = std::env::var("XDG_RUNTIME_DIR").unwrap_or_else(|_| "/tmp".into());
    let base = if Path::new(&base).is_dir() { base } else { "/tmp".into() };
    let mine = format!("crossover-{}-", std::process::id());
    let names =
        std::fs::read_dir(base).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&mine)).collect()
}

/// One test, so that no other job of this process is under way when the directories are looked at.
#[test]
fn jobs_run_and_end() {
    if std::env::var("TEST_ROLE").is_ok() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();

    for world in [1, 2, 8] {
        let outcome = ranks(world, "all well").run().unwrap();
        assert_eq!((outcome.code, outcome.cause()), (0, None), "world {world}");
    }

    // A rank that dies is named, by its signal; the others say the same and are no first failure.
    let failure = ranks(4, "one dies").run().unwrap().failures.remove(0);
    assert_eq!((failure.rank, failure.how), (2, Ending::Signal(6)));

    // The first failure's code counts; the others are asked to end.
    let script =
        "trap 'exit 9' TERM; [ $CROSSOVER_RANK = 1 ] && exit 7; while :; do sleep 0.05; done";
    let outcome = shell(3, script).run().unwrap();
    assert_eq!(outcome.code, 7);
    let pid = outcome.failures[0].pid;
    assert_eq!(outcome.cause(), Some(format!("rank 1 (pid {pid}) ended with code 7")));
    assert_eq!(outcome.left.iter().map(|left| left.rank).collect::<Vec<_>>(), [0, 2]);

    // One that was stopped is ended with the others, and that it was is told.
    let stopped = at("stopped");
    let script = format!(
        "case $CROSSOVER_RANK in 0) while ! [ -s {stopped} ]; do sleep 0.05; done; sleep 0.3; exit 4;; \
         1) echo $$ > {stopped}; kill -STOP $$;; esac; sleep 600"
    );
    let outcome = shell(3, &script).run().unwrap();
    assert_eq!(outcome.code, 4);
    let pid = std::fs::read_to_string(stopped).unwrap().trim().parse::<u32>().unwrap();
    let [Left { rank: 1, stopped, .. }, Left { rank: 2, stopped: none, running }] =
        &outcome.left[..]
    else {
        panic!("{outcome:?}");
    };
    assert_eq!((&stopped[..], &none[..]), (&[pid][..], &[][..]));
    assert!(running.len() >= 2, "the shell and what it runs: {running:?}");
    let cause = outcome.cause().unwrap();
    assert!(cause.contains(&format!("; rank 1 (pid {pid}) was stopped by a signal")), "{cause}");

    // Where all that are left are stopped, nobody waits for them.
    let stuck = at("stuck");
    let script = format!(
        "[ $CROSSOVER_RANK = 1 ] && {{ echo $$ > {stuck}; kill -STOP $$; }}; \
         while ! grep -q ') T' /proc/$(cat {stuck})/stat; do sleep 0.05; done 2> {stuck}.log; exit 4"
    );
    let start = Instant::now();
    let outcome = shell(3, &script).grace(Duration::from_secs(60)).run().unwrap();
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    let cause = outcome.cause().unwrap();
    assert!(cause.contains("; rank 1 (pid ") && cause.contains(" was stopped by"), "{cause}");

    // Those that do not end are ended, with all that they started.
    let pids = at("pids");
    let script = format!(
        "trap '' TERM; [ $CROSSOVER_RANK = 0 ] && {{ sleep 0.3; kill -9 $$; }}; sleep 600 & echo $! $$ >> {pids}; wait"
    );
    let start = Instant::now();
    let outcome = shell(3, &script).run().unwrap();
    assert_eq!(outcome.code, 128 + 9);
    assert!(start.elapsed() < Duration::from_secs(20));
    let pids = std::fs::read_to_string(pids).unwrap();
    assert_eq!(pids.split_whitespace().count(), 4);
    for pid in pids.split_whitespace() {
        assert!(is_gone(pid), "{pid} is left");
    }

    // Signals to the launcher reach the ranks, and who sent them is told. Ranks that end well after one
    // have not failed, nor have those that it ends; and those that do not end are killed.
    let me = std::process::id();
    let by = std::fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
    for (nth, (signal, trap, killed)) in [
        (15, "exit 0", vec![]),
        (2, "exit 3", vec![]),
        (1, "", vec![0, 1]),
        (3, "exit 0", vec![]),
        (10, "exit 0", vec![]),
        (12, "exit 3", vec![]),
        (14, "exit 0", vec![]),
    ]
    .into_iter()
    .enumerate()
    {
        let (ready, marks) = (at(&format!("ready {nth}")), at(&format!("marks {nth}")));
        let outcome = stop(signal, trap, &ready, &marks);
        assert_eq!((outcome.code, &outcome.failures[..]), (128 + signal, &[][..]));
        let stop = outcome.stop.as_ref().unwrap();
        assert_eq!(stop.sender, Sender::Process { pid: me, name: by.clone() });
        assert_eq!((stop.signal, &stop.killed), (signal, &killed));
        assert_eq!(outcome.left.len(), 2);
        // Before any rank was told.
        let marks = std::fs::read_to_string(marks).unwrap_or_default();
        assert_eq!(marks.lines().count(), if trap.is_empty() { 0 } else { 2 });
    }

    // Whoever interrupts a second time does not wait for ranks that take no notice.
    let ready = at("ready twice");
    let script = format!("trap '' 2; echo >> '{ready}'; while :; do sleep 0.05; done");
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let signaller = std::thread::spawn(move || {
        await_lines(&ready, 2);
        // Two that come while this process stands still are one.
        while !is_over.load(Relaxed) {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)
                .unwrap();
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let start = Instant::now();
    let outcome = shell(2, &script).grace(Duration::from_secs(30)).run();
    over.store(true, Relaxed);
    signaller.join().unwrap();
    let outcome = outcome.unwrap();
    assert_eq!((outcome.code, outcome.stop.unwrap().killed), (128 + 2, vec![0, 1]));
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());

    // Who ends a whole session has sent its signal to ranks too: one may be gone before this process hears.
    let script =
        format!("[ $CROSSOVER_RANK = 1 ] && kill -TERM $$; sleep 0.1; kill -TERM {me}; sleep 600");
    let outcome = shell(2, &script).run().unwrap();
    assert_eq!((outcome.code, outcome.failures.len()), (128 + 15, 0), "{outcome:?}");

    let e = Job::new(2, "/nonexistent/program", [""]).run().unwrap_err().to_string();
    assert!(e.starts_with("cannot start rank 0 as `/nonexistent/program`: "), "{e}");

    assert_eq!(directories(), [""; 0]);
}

/// A job of two ranks that is sent a signal once they are there. They do `trap` then, and note whether they
/// were told of the stop by the time; without any they take no notice.
fn stop(signal: u8, trap: &str, ready: &str, marks: &str) -> Outcome {
    let note = format!("[ -e \"${{CROSSOVER_RENDEZVOUS#unix:}}.stopped\" ] && echo >> '{marks}'; ");
    let trap = if trap.is_empty() { String::new() } else { format!("{note}{trap}") };
    let script = format!(
        "trap '{}' {signal}; echo >> '{ready}'; while :; do sleep 0.05; done",
        trap.replace('\'', "'\\''")
    );
    let ready = ready.to_owned();
    let signaller = std::thread::spawn(move || {
        await_lines(&ready, 2);
        let signal = rustix::process::Signal::from_named_raw(signal.into()).unwrap();
        rustix::process::kill_process(rustix::process::getpid(), signal).unwrap();
    });
    let grace = if trap.is_empty() { Duration::from_millis(500) } else { Duration::from_secs(20) };
    let outcome = shell(2, &script).grace(grace).run().unwrap();
    signaller.join().unwrap();
    outcome
}

/// Waits until ranks have written so many lines.
fn await_lines(path: &str, lines: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    while std::fs::read_to_string(path).map_or(0, |text| text.lines().count()) < lines
        && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// An orphan is reaped by init, which may take a moment.
fn is_gone(pid: &str) -> bool {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        if status.is_empty() || status.contains("State:\tZ") {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The kernel ends the ranks of a launcher that is killed.
#[test]
fn ranks_do_not_outlive_a_killed_launcher() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    if let Ok(pids) = std::env::var("TEST_PIDS") {
        let script = format!("echo $$ >> {pids}; exec sleep 600");
        shell(3, &script).run().unwrap();
        return;
    }
    let me = std::env::current_exe().unwrap();
    let runtime = dir.path().join("runtime");
    std::fs::create_dir(&runtime).unwrap();
    let mut launcher = Command::new(me)
        .args(["--exact", "ranks_do_not_outlive_a_killed_launcher", "--quiet"])
        .env("TEST_PIDS", &pids)
        .env("XDG_RUNTIME_DIR", runtime)
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let started = loop {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        if text.lines().count() == 3 {
            break text;
        }
        assert!(Instant::now() < until, "{text}");
        std::thread::sleep(Duration::from_millis(10));
    };
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(started.lines().all(is_gone), "{started}");
}
