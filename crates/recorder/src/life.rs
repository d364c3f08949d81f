//! Is the process that keeps a ring still there? It holds the ring's lock for as long as it lives, in
//! whatever pid namespace; where `/proc` shows it, that says more.

use std::os::fd::AsFd;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::about::Process;
use crate::image::Life;

impl Process {
    /// This process.
    pub fn here() -> Process {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Process {
            pid: std::process::id(),
            started: parse(&read("/proc/self/stat")).map_or(0, |stat| stat.started),
            boot: read("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            pid_namespace: namespace(),
        }
    }

    /// Is it there, as far as `/proc` tells? `None` if it does not.
    pub(crate) fn look(&self) -> Option<Life> {
        if self.started == 0 || self.pid_namespace.is_empty() || self.pid_namespace != namespace() {
            return None;
        }
        let Ok(text) = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)) else {
            return Some(Life::Gone);
        };
        let stat = parse(&text)?;
        Some(match stat.state {
            _ if stat.started != self.started => Life::Gone,
            'X' | 'x' => Life::Gone,
            _ if stat.is_ending && self.all_threads_end(&stat) => Life::Gone,
            'T' | 't' => Life::Stopped,
            _ => Life::Running,
        })
    }

    /// Where the main thread ends: do all? A process that was killed holds its locks on while a driver
    /// takes down what it had on a device, which takes tens of milliseconds and more, and makes no call
    /// any more. One whose main thread alone has ended goes on.
    fn all_threads_end(&self, main: &Stat) -> bool {
        if main.threads <= 1 {
            return true;
        }
        let threads = match std::fs::read_dir(format!("/proc/{}/task", self.pid)) {
            Ok(threads) => threads,
            Err(e) => return has_ended(&e),
        };
        threads.into_iter().all(|thread| {
            match thread.and_then(|thread| std::fs::read_to_string(thread.path().join("stat"))) {
                Ok(text) => parse(&text).is_some_and(|stat| stat.is_ending),
                Err(e) => has_ended(&e),
            }
        })
    }
}

/// Is there nobody to tell of any more? Another error says nothing.
fn has_ended(why: &std::io::Error) -> bool {
    let code = why.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::NOENT | Errno::SRCH))
}

/// What the lock and `/proc` say of the owner of a ring.
pub(crate) fn of(ring: impl AsFd, owner: &Process) -> Life {
    // Shared, so that two who look at the same time do not take each other for the owner.
    match rustix::fs::flock(ring.as_fd(), FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = rustix::fs::flock(ring.as_fd(), FlockOperation::Unlock);
            Life::Gone
        }
        // A child that was forked holds its parent's lock on.
        Err(Errno::WOULDBLOCK) => owner.look().unwrap_or(Life::Running),
        Err(_) => Life::Unknown,
    }
}

/// Does nobody hold the lock, as the owner would?
pub(crate) fn is_free(ring: impl AsFd) -> bool {
    let is_free = rustix::fs::flock(ring.as_fd(), FlockOperation::NonBlockingLockShared).is_ok();
    if is_free {
        let _ = rustix::fs::flock(ring.as_fd(), FlockOperation::Unlock);
    }
    is_free
}

fn namespace() -> String {
    std::fs::read_link("/proc/self/ns/pid")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default()
}

struct Stat {
    state: char,
    threads: u64,
    started: u64,
    /// Has this thread ended, or does it end: it exits, or was sent what nobody survives?
    is_ending: bool,
}

/// A bit of the flags of a thread that exits: Linux, include/linux/sched.h, `PF_EXITING`.
const EXITING: u64 = 0x4;
/// The bit of SIGKILL among a thread's pending signals.
const KILLED: u64 = 1 << 8;

/// Fields 3, 9, 20, 22 and 31 of proc_pid_stat(5); the name before them may hold anything.
fn parse(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |nth: usize| fields.get(nth - 3)?.parse::<u64>().ok();
    let state = fields.first()?.chars().next()?;
    let is_ending = state == 'Z' || number(9)? & EXITING != 0 || number(31)? & KILLED != 0;
    Some(Stat { state, threads: number(20)?, started: number(22)?, is_ending })
}

/// Held by tests that fork, and by those that judge rings whose owner was this process: a child holds the
/// locks of all of them on.
#[cfg(test)]
pub(crate) static FORKING: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_fields() {
        let of = |flags: u64, pending: u64| {
            let rest = format!("4 5 6 7 8 {flags} 10 11 12 13 14 15 16 17 18 19 20 21 777");
            let rest = format!("{rest} 23 24 25 26 27 28 29 30 {pending} 32 33");
            parse(&format!("12 (a b) c) T {rest}")).expect("read")
        };
        let stat = of(0x40_0000, 0x1000);
        assert_eq!((stat.state, stat.threads, stat.started), ('T', 20, 777));
        assert!(!stat.is_ending);
        assert!(of(0x40_0004, 0).is_ending && of(0, 0x100).is_ending);
    }

    #[test]
    fn a_process_that_was_killed_is_gone_though_it_holds_its_lock_on() {
        // Taking down so many pages takes tens of milliseconds, as taking down a device does.
        let script = "import sys
pages = b'x' * (1 << 28)
print(flush=True)
sys.stdin.read()";
        let forking = FORKING.lock().expect("no such test panics");
        let mut command = std::process::Command::new("python3");
        command.args(["-c", script]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let spawned = command.spawn();
        drop(forking);
        let Ok(mut child) = spawned else {
            use std::io::Write as _;
            let why = "skipped: a process that takes long to end takes python3, which is not here";
            let _ = writeln!(std::io::stderr(), "{why}");
            return;
        };
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut line)
            .expect("a line");
        let path = format!("/proc/{}/stat", child.id());
        let started =
            parse(&std::fs::read_to_string(path).expect("a child")).expect("read").started;
        let process = Process { pid: child.id(), started, ..Process::here() };
        assert_eq!(process.look(), Some(Life::Running));
        child.kill().expect("ours");
        assert_eq!(process.look(), Some(Life::Gone), "it makes no call any more");
        child.wait().expect("a child");
    }

    #[test]
    fn a_process_whose_main_thread_has_ended_goes_on_while_others_run() {
        let script = "import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.PyDLL(None).pthread_exit(None)";
        // Until it is another program, a child holds the locks of rings that other tests give up.
        let forking = FORKING.lock().expect("no such test panics");
        let spawned = std::process::Command::new("python3").args(["-c", script]).spawn();
        drop(forking);
        let Ok(mut child) = spawned else {
            use std::io::Write as _;
            let why =
                "skipped: a process whose main thread alone ends takes python3, which is not here";
            let _ = writeln!(std::io::stderr(), "{why}");
            return;
        };
        let path = format!("/proc/{}/stat", child.id());
        let read = || parse(&std::fs::read_to_string(&path).expect("a child")).expect("read");
        let begun = std::time::Instant::now();
        while read().state != 'Z' {
            assert!(begun.elapsed().as_secs() < 30, "its main thread goes on");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let process = Process { pid: child.id(), started: read().started, ..Process::here() };
        assert_eq!(process.look(), Some(Life::Running));
        child.kill().expect("ours");
        while read().threads > 1 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(process.look(), Some(Life::Gone));
        child.wait().expect("a child");
    }

    #[test]
    fn this_process_runs_and_one_of_another_start_is_gone() {
        let here = Process::here();
        assert_eq!(here.look(), Some(Life::Running));
        let before = Process { started: here.started + 1, ..here.clone() };
        assert_eq!(before.look(), Some(Life::Gone));
        let elsewhere = Process { pid_namespace: "pid:[1]".to_owned(), ..here };
        assert_eq!(elsewhere.look(), None);
    }
}
