//! With a program in the daemon's place. Each owner of a daemon is a process of its own, so that it
//! can have an environment, and be killed.

use std::io::Read as _;

use super::*;

/// A daemon is a process that sleeps; it is there as long as its `control` is.
const FAKE: &str = r#"#!/bin/sh
pipes=${CUDA_MPS_PIPE_DIRECTORY:-/nonexistent}
if [ "$1" = -d ]; then
    if [ -n "$REFUSES" ]; then echo "no GPU for it" >&2; exit 1; fi
    sleep 600 & echo $! >"$pipes/nvidia-cuda-mps-control.pid"
    : >"$pipes/control"
    exit 0
fi
[ -e "$pipes/control" ] || exit 1
read -r command
case $command in
quit) kill "$(cat "$pipes/nvidia-cuda-mps-control.pid")"; rm "$pipes/control";;
get_server_list) ;;
*) exit 1;;
esac
"#;

/// Where an owner says what it has.
const SAYS: &str = "MPS_OWNER_SAYS";

/// Not a test: a process that the tests below start. It owns a daemon until its input ends.
#[test]
#[ignore = "the tests beside it start it"]
fn owner() {
    let Some(says) = std::env::var_os(SAYS) else { return };
    let daemon = Daemon::unless_found();
    let said = match &daemon {
        Ok(Some(daemon)) => format!("has {}", daemon.folder.display()),
        Ok(None) => "found one".to_owned(),
        Err(why) => why.clone(),
    };
    let ready = Path::new(&says).with_extension("unfinished");
    fs::write(&ready, said).expect("a file");
    fs::rename(&ready, &says).expect("a file");
    let _ = std::io::stdin().read(&mut [0]);
}

struct Owner {
    process: Child,
    folder: tempfile::TempDir,
}

impl Owner {
    fn start(has_program: bool, variables: &[(&str, &OsStr)]) -> Owner {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(PROGRAM);
        fs::write(&program, FAKE).expect("a file");
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("a program");
        let path = match has_program {
            true => format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("text")),
            false => "/nonexistent".to_owned(),
        };
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "perf::mps::tests::owner", "--ignored"]);
        command.env("PATH", path).env("TMPDIR", folder.path()).env(PIPES, "/nonexistent");
        command.env(SAYS, folder.path().join("says")).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Owner { process: command.spawn().expect("it starts"), folder }
    }

    fn says(&self) -> String {
        let path = self.folder.path().join("says");
        eventually("the owner says what it has", || path.exists());
        fs::read_to_string(path).expect("text")
    }

    /// Its daemon's folder and process.
    fn daemon(&self) -> (PathBuf, i32) {
        let says = self.says();
        let folder = PathBuf::from(says.strip_prefix("has ").expect(&says));
        let pid = folder.join("pipe/nvidia-cuda-mps-control.pid");
        let pid = fs::read_to_string(pid).expect("a daemon").trim().parse().expect("a number");
        assert!(is_alive(pid) && folder.join("log").is_dir());
        (folder, pid)
    }
}

#[track_caller]
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that has ended and that nobody has reaped counts as none.
fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_daemon_ends_with_its_owner() {
    let mut owner = Owner::start(true, &[]);
    let (folder, pid) = owner.daemon();
    drop(owner.process.stdin.take());
    assert!(owner.process.wait().expect("it ends").success());
    assert!(!folder.exists() && !is_alive(pid), "its end is waited for");
}

#[test]
fn a_daemon_ends_though_its_owner_is_killed() {
    let mut owner = Owner::start(true, &[]);
    let (folder, pid) = owner.daemon();
    owner.process.kill().expect("it ends");
    owner.process.wait().expect("it ends");
    eventually("the daemon ends", || !folder.exists() && !is_alive(pid));
}

#[test]
fn a_daemon_that_is_there_is_taken() {
    let mut first = Owner::start(true, &[]);
    let (folder, pid) = first.daemon();
    let pipes = folder.join("pipe");
    let mut second = Owner::start(true, &[(PIPES, pipes.as_os_str())]);
    assert_eq!(second.says(), "found one");
    drop(second.process.stdin.take());
    second.process.wait().expect("it ends");
    assert!(is_alive(pid), "it is not the second's to end");
    // Through a container's wall the program may be out of sight, and its files in sight.
    let mut third = Owner::start(false, &[(PIPES, pipes.as_os_str())]);
    assert_eq!(third.says(), "found one");
    for owner in [&mut third, &mut first] {
        drop(owner.process.stdin.take());
        owner.process.wait().expect("it ends");
    }
}

#[test]
fn without_the_program_it_is_said_what_follows() {
    let mut owner = Owner::start(false, &[]);
    let says = owner.says();
    drop(owner.process.stdin.take());
    owner.process.wait().expect("it ends");
    assert_eq!(
        says,
        "ranks share a GPU without an MPS daemon, so they take turns by time slices and a call \
         takes milliseconds: there is no program nvidia-cuda-mps-control"
    );
}

#[test]
fn a_daemon_that_does_not_start_is_told_in_its_own_words() {
    let mut owner = Owner::start(true, &[("REFUSES", "1".as_ref())]);
    let says = owner.says();
    assert!(says.ends_with("nvidia-cuda-mps-control -d failed: no GPU for it"), "{says}");
    drop(owner.process.stdin.take());
    owner.process.wait().expect("it ends");
    let left = fs::read_dir(owner.folder.path()).expect("a folder").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(
        !left.iter().any(|name| name.to_string_lossy().starts_with("crossover-mps")),
        "{left:?}"
    );
}
