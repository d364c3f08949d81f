//! Probes that hang, lie or die.

use std::process::Command;
use std::time::{Duration, Instant};

use crossover_device::verdict::Probe;
use crossover_device::verdict::observation::{Observation, judge};
use crossover_device::verdict::probe::{ChildProbe, ThreadProbe, answer};

use crate::{good, pair};

const SOON: Duration = Duration::from_millis(150);
const AMPLE: Duration = Duration::from_secs(20);

fn shell(script: &str) -> ChildProbe<impl Fn() -> Command + Send + Sync + use<>> {
    let script = script.to_owned();
    ChildProbe::new(move || {
        let mut command = Command::new("sh");
        // The first argument after a script is its name.
        command.args(["-c", &script, "probe"]);
        command
    })
}

fn observe(probe: &dyn Probe, within: Duration) -> Result<Observation, String> {
    let started = Instant::now();
    let seen = probe.observe(&pair(0, 1), started + within);
    let took = started.elapsed();
    assert!(took < within + Duration::from_secs(5), "{took:?} instead of {within:?}");
    seen
}

#[test]
fn a_thread_that_answers_is_heard() {
    assert_eq!(observe(&ThreadProbe::new(|_| Ok(good())), AMPLE), Ok(good()));
    let failing = ThreadProbe::new(|pair| Err(format!("no memory on {}", pair.owner)));
    assert_eq!(observe(&failing, AMPLE), Err("no memory on GPU-1".to_owned()));
}

#[test]
fn a_thread_that_hangs_is_left() {
    let hangs = ThreadProbe::new(|_| {
        std::thread::sleep(Duration::from_secs(600));
        Ok(good())
    });
    let why = observe(&hangs, SOON).unwrap_err();
    assert!(why.starts_with("the probe gave no answer within 0."), "{why}");
}

#[test]
fn a_thread_that_panics_is_told() {
    let panics = ThreadProbe::new(|_| panic!("a wrong turn"));
    assert_eq!(observe(&panics, AMPLE), Err("the probe panicked".to_owned()));
}

#[test]
fn a_child_is_asked_of_its_pair_and_heard() {
    let mut text = Vec::new();
    answer(&mut text, &good()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let probe = shell(&format!("[ \"$1 $2\" = \"GPU-0 GPU-1\" ] && echo '{text}'"));
    assert_eq!(observe(&probe, AMPLE), Ok(good()));
}

#[test]
fn a_child_that_hangs_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let probe = shell(&format!("echo $$ > {}; exec sleep 600", file.display()));
    let why = observe(&probe, Duration::from_secs(1)).unwrap_err();
    assert!(why.starts_with("the probe gave no answer within 1."), "{why}");
    let pid = std::fs::read_to_string(&file).unwrap();
    let process = std::path::PathBuf::from(format!("/proc/{}", pid.trim()));
    let deadline = Instant::now() + AMPLE;
    while process.exists() {
        assert!(Instant::now() < deadline, "{} still runs", process.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_grandchild_that_keeps_the_pipe_is_not_waited_for() {
    let why = observe(&shell("sleep 8 & exit 0"), SOON).unwrap_err();
    assert!(why.contains("no answer"), "{why}");
}

#[test]
fn a_child_that_fails_is_told_with_its_last_words() {
    let why = observe(&shell("echo first >&2; echo 'no such device' >&2; exit 3"), AMPLE);
    let expected = "the probe's process ended with exit status: 3: no such device";
    assert_eq!(why, Err(expected.to_owned()));
    let why = observe(&shell("kill -SEGV $$"), AMPLE).unwrap_err();
    assert!(why.contains("signal: 11") && why.ends_with("it said nothing"), "{why}");
    let missing = ChildProbe::new(|| Command::new("/no/such/program"));
    let why = observe(&missing, AMPLE).unwrap_err();
    assert!(why.starts_with("/no/such/program does not start: "), "{why}");
}

#[test]
fn a_child_that_talks_nonsense_has_seen_nothing() {
    for script in ["echo proven", "true", "echo '{\"before\": 0}'", "yes | head -c 3000000"] {
        let why = observe(&shell(script), AMPLE).unwrap_err();
        assert!(why.contains("answered no observation"), "{script}: {why}");
    }
}

#[test]
fn a_child_cannot_say_proven_it_must_show() {
    let probe = shell("echo '{\"before\":0,\"wrote\":[1],\"user_read\":[1],\"owner_read\":[0]}'");
    let seen = observe(&probe, AMPLE).unwrap();
    assert!(judge(&seen).to_string().starts_with("broken: "));
}
