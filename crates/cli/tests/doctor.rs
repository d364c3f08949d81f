//! `crossover doctor` as a program: on this machine, with nothing in the environment, and where what
//! the kernel tells is hidden from it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_crossover");

/// Its report, and the code it ended with.
#[track_caller]
fn report(output: &Output) -> (Value, Option<i32>) {
    let error = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {error} {}", String::from_utf8_lossy(&output.stdout)));
    (report, output.status.code())
}

fn of_check<'a>(report: &'a Value, check: &str) -> Vec<&'a Value> {
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.filter(|finding| finding["check"] == check).collect()
}

#[track_caller]
fn failures(report: &Value) -> Vec<&Value> {
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.filter(|finding| finding["verdict"] == "fail").collect()
}

#[test]
fn with_an_empty_environment_every_section_is_there_and_nothing_fails() {
    let output = Command::new(PROGRAM).args(["doctor", "--json"]).env_clear().output();
    let (report, code) = report(&output.expect("it starts"));
    assert_eq!(failures(&report), Vec::<&Value>::new());
    assert_eq!(code, Some(0));
    let findings = report["findings"].as_array().expect("findings");
    let mut sections: Vec<&str> =
        findings.iter().map(|finding| finding["section"].as_str().expect("a word")).collect();
    sections.dedup();
    let want = ["machine", "container", "devices", "peers", "environment", "groups"];
    assert_eq!(sections, want);
    for check in
        ["kernel", "clock", "container", "ulimit", "kernels", "iommu", "launcher", "shm_dir"]
    {
        assert!(!of_check(&report, check).is_empty(), "{check}");
    }
    for finding in findings {
        assert_ne!(finding["found"], "", "{finding}");
        assert!(finding["verdict"] == "ok" || finding["advice"].is_string(), "{finding}");
    }
}

#[test]
fn the_groups_that_could_be_are_told_to_programs() {
    let output = Command::new(PROGRAM).args(["doctor", "--json"]).env_clear().output();
    let (report, _) = report(&output.expect("it starts"));
    let groups = report["groups"].as_array().expect("groups");
    assert!(!groups.is_empty());
    for group in groups {
        let algorithms = group["algorithms"].as_array().expect("algorithms");
        for algorithm in algorithms {
            assert_eq!(algorithm["eligible"] == true, algorithm["reason"].is_null(), "{algorithm}");
        }
        assert!(algorithms.iter().any(|algorithm| algorithm["use"] == "ipc/one_shot_push"));
        let ops: Vec<&Value> =
            group["serves"].as_array().expect("bands").iter().map(|band| &band["op"]).collect();
        assert!(ops.contains(&&Value::from("all_reduce")), "{ops:?}");
    }
    // Where there is no device, the host serves all.
    if report["topology"].as_array().expect("a list").is_empty() {
        assert_eq!((groups.len(), &groups[0]["on"]), (1, &Value::from("host")));
        let bands = groups[0]["serves"].as_array().expect("bands");
        assert!(bands.iter().all(|band| band["use"].is_string()), "{bands:?}");
    }
}

#[test]
fn a_launchers_place_is_told_and_two_that_contradict_fail() {
    let torchrun =
        [("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "2")];
    let run = |more: &[(&str, &str)]| {
        let mut command = Command::new(PROGRAM);
        command.args(["doctor", "--json"]).env_clear().envs(torchrun).envs(more.iter().copied());
        command.output().expect("it starts")
    };
    let (well, code) = report(&run(&[]));
    let place = of_check(&well, "launcher")[0]["found"].as_str().expect("a sentence");
    assert!(place.starts_with("Torchrun: rank 1 of 2, 1 of 2 on this node"), "{place}");
    assert_eq!(code, Some(0), "{:?}", failures(&well));
    let other = [
        ("OMPI_COMM_WORLD_RANK", "0"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
    ];
    let (ill, code) = report(&run(&other));
    assert_eq!((code, failures(&ill).len()), (Some(1), 1));
}

#[test]
fn people_get_the_same_findings_in_sections() {
    let output = Command::new(PROGRAM).arg("doctor").env_clear().output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    for section in ["machine\n", "\ncontainer\n", "\ndevices\n", "\npeers\n", "\ngroups\n"] {
        assert!(text.contains(section), "{text}");
    }
    let last = text.lines().last().expect("a last line");
    assert!(last.starts_with("0 checks failed, "), "{last}");
}

/// What the program tells inside of walls of its own, after this shell script; `None`, and a note,
/// where this machine lets nobody build walls.
fn walled(walls: &[&str], script: &str) -> Option<Output> {
    let script = format!("{script}\nexec \"$0\" doctor --json");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user"]).args(walls).args(["sh", "-ec", &script, PROGRAM]);
    command.env_remove("CROSSOVER_RANK");
    let output = command.output().ok()?;
    let error = String::from_utf8_lossy(&output.stderr);
    let refused = error.contains("unshare") || error.contains("mount:");
    if refused {
        let note = format!("skipped: needs user namespaces: {error}\n");
        std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes()).expect("written");
    }
    (!refused).then_some(output)
}

#[test]
fn where_the_kernel_tells_nothing_it_ends_well() {
    let empty = tempfile::tempdir().expect("a folder");
    let at = Path::new(empty.path()).display();
    let hide = format!("mount --bind {at} /sys\nmount --bind {at} /proc");
    let Some(output) = walled(&["--mount"], &hide) else { return };
    let (report, code) = report(&output);
    assert_eq!((failures(&report), code), (Vec::<&Value>::new(), Some(0)));
    assert_eq!(of_check(&report, "node")[0]["verdict"], "warn");
    for check in ["namespaces", "ulimit", "memory", "caches", "governor"] {
        assert!(of_check(&report, check).is_empty(), "{check}");
    }
    assert_eq!(of_check(&report, "group").len(), 3);
}

#[test]
fn walls_are_told_with_what_they_mean() {
    let Some(output) = walled(&["--pid", "--fork", "--mount-proc"], "") else { return };
    let (report, code) = report(&output);
    let walls = of_check(&report, "namespaces")[0];
    let found = walls["found"].as_str().expect("a sentence");
    assert!(found.contains("not the machine's"), "{found}");
    assert!(found.contains("/proc/PID/fd"), "{found}");
    assert!(walls["advice"].as_str().expect("advice").contains("--pid=host"), "{walls}");
    assert_eq!(code, Some(0), "{:?}", failures(&report));
}
