//! `crossover diagnose` over rings that lie about: what it says, how it ends, what it writes.
//! Its text is in `tests/cli/diagnose.md`.

mod of_others;
mod rings;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crossover_core::call::Dtype;
use crossover_recorder::{Class, Diagnosis, Verdict, analyse, in_folder};
use rings::{Call, Ranks, STEP};
use serde_json::Value;

fn diagnose(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crossover"))
        .arg("diagnose")
        .args(arguments)
        .env("CROSSOVER_RECORD_DIR", folder)
        .output()
        .expect("the program starts")
}

#[track_caller]
fn ended(output: &Output, code: i32) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
}

#[track_caller]
fn json(output: &Output, code: i32) -> Value {
    ended(output, code);
    serde_json::from_slice(&output.stdout).expect("JSON alone")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a temporary folder's name is text")
}

/// A job of four ranks, of which rank 2 makes another call than the others.
fn odd_one(folder: &Path, odd: Call) -> Ranks {
    let mut ranks = Ranks::new(folder, "demo", 7, 4);
    ranks.steps(0..6);
    for rank in 0..4 {
        ranks.begin(rank, if rank == 2 { odd } else { STEP[0] });
    }
    ranks
}

/// What the watchdog keeps of a ring.
fn keep(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten().filter(|e| e.path().is_file()) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let rank = name.rsplit('.').next().expect("a rank");
        fs::copy(entry.path(), to.join(format!("{rank}.ring"))).expect("a copy");
    }
}

/// What is found out of the rings of some ranks at this moment.
fn judged(folder: &Path, ranks: &[u32]) -> Diagnosis {
    let mut images = in_folder(folder).expect("a folder").images;
    images.retain(|image| ranks.contains(&image.about.rank));
    analyse(&images).pop().expect("a job")
}

/// What the watchdog writes beside the rings.
fn tell(told: &Diagnosis, dump: &Path) -> Value {
    let told = serde_json::to_value(told).expect("data alone");
    fs::write(dump.join("verdict.json"), told.to_string()).expect("a file");
    told
}

#[test]
fn a_folder_and_a_job_are_one_target() {
    let folder = folder();
    let _alive = odd_one(folder.path(), Call { count: 64, ..STEP[0] });
    for target in [path(folder.path()), "demo"] {
        let report = json(&diagnose(&[target, "--json"], folder.path()), 1);
        assert_eq!(report["jobs"][0]["job"], "demo");
        let verdict = &report["jobs"][0]["verdicts"][0];
        assert_eq!(verdict["class"], "size_mismatch");
        assert_eq!(verdict["ranks"], serde_json::json!([2]));
        assert_eq!(verdict["seq"], 19);
        assert_eq!(report["notes"], serde_json::json!([]));
    }
}

#[test]
fn of_a_job_that_has_ended_the_dumps_are_found() {
    let (live, place) = (folder(), folder());
    let mut ranks = Ranks::new(live.path(), "over", 7, 2);
    ranks.begin(0, STEP[0]);
    ranks.begin(1, Call { count: 64, ..STEP[0] });
    let own = crossover_recorder::own_dumps(place.path());
    let dump = own.join("crossover.over.tp.7");
    keep(live.path(), &dump);
    tell(&judged(live.path(), &[0, 1]), &dump);
    drop(ranks);
    let ask = |job: &str, (name, dumps): (&str, &Path)| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crossover"));
        command.args(["diagnose", job]).env("CROSSOVER_RECORD_DIR", place.path());
        command.env(name, dumps).output().expect("the program starts")
    };
    for dumps in [("TMPDIR", place.path()), ("CROSSOVER_DUMP_DIR", &own)] {
        let output = ask("over", dumps);
        ended(&output, 1);
        let text = String::from_utf8_lossy(&output.stdout);
        let left = format!("`over` has no rings any more; this is what it left: {}", path(&dump));
        for part in ["size_mismatch: ", "when its dump was written", &left] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let output = ask("overs", ("TMPDIR", place.path()));
    ended(&output, 2);
    let error = String::from_utf8_lossy(&output.stderr);
    let nor = format!("no job of that name has rings here, nor dumps in {};", path(&own));
    assert!(error.contains(&nor), "{error}");
}

#[test]
fn a_healthy_job_that_lives_ends_with_0() {
    let folder = folder();
    let mut ranks = Ranks::new(folder.path(), "demo", 7, 4);
    ranks.steps(0..6);
    // A rank is ahead at the moment.
    ranks.begin(1, STEP[0]);
    let output = diagnose(&["demo"], folder.path());
    ended(&output, 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("nothing wrong was found"));
}

#[test]
fn rings_whose_owners_are_gone_are_a_crash() {
    let folder = folder();
    let mut ranks = odd_one(folder.path(), STEP[0]);
    ranks.lose(3);
    let report = json(&diagnose(&["demo", "--json"], folder.path()), 1);
    let verdict = &report["jobs"][0]["verdicts"][0];
    assert_eq!(
        (&verdict["class"], &verdict["ranks"]),
        (&"crashed_rank".into(), &serde_json::json!([3]))
    );
}

#[test]
fn a_dump_is_about_the_moment_of_the_dump() {
    let (live, dump) = (folder(), folder());
    let ranks = odd_one(live.path(), STEP[0]);
    let dump = dump.path().join("crossover.demo.tp.7");
    keep(live.path(), &dump);
    drop(ranks);
    let lives = |rank: u32| if rank == 1 { "gone" } else { "running" };
    let told: Vec<Value> =
        (0..4).map(|rank| serde_json::json!({ "rank": rank, "life": lives(rank) })).collect();
    let told = serde_json::json!({ "groups": [{ "group": "7", "ranks": told }] });
    fs::write(dump.join("verdict.json"), told.to_string()).expect("a file");
    // The folder of dumps as well as the dump; there is no other job that lives.
    for target in [dump.parent().expect("a folder"), &dump] {
        let report = json(&diagnose(&[path(target), "--json"], live.path()), 1);
        let verdict = &report["jobs"][0]["verdicts"][0];
        assert_eq!(verdict["class"], "crashed_rank");
        assert_eq!(verdict["ranks"], serde_json::json!([1]));
        let age = report["jobs"][0]["groups"][0]["ranks"][0]["beat_age_ms"].as_u64();
        assert!(age.is_some_and(|age| age < 1000), "{age:?}");
    }
}

#[test]
fn a_dump_that_lost_rings_says_what_it_said_when_it_was_whole() {
    let (live, dump) = (folder(), folder());
    let ranks = odd_one(live.path(), STEP[0]);
    keep(live.path(), dump.path());
    drop(ranks);
    let told: Vec<Value> =
        [3, 9].map(|rank| serde_json::json!({ "rank": rank, "seen": true })).into();
    let told = serde_json::json!({
        "groups": [{ "group": "7", "tag": "tp", "ranks": told }],
        "verdicts": [{ "sentence": "rank 9 did it" }],
    });
    fs::write(dump.path().join("verdict.json"), told.to_string()).expect("a file");
    let output = diagnose(&[path(dump.path())], live.path());
    let said = String::from_utf8_lossy(&output.stdout);
    let lost =
        "the dump has lost the rings of rank 9 of `tp`; when it was written it said: rank 9 did it";
    assert!(said.contains(lost), "{said}");
}

/// The watchdog looks at all groups of its process, and copies the rings of the one that hangs.
#[test]
fn rings_that_no_dump_was_to_have_are_not_lost() {
    let (live, dumps) = (folder(), folder());
    let ranks = odd_one(live.path(), Call { count: 64, ..STEP[0] });
    let of = |group, tag| {
        let seen = |rank, issued| {
            let (life, finished) = ("running", 19);
            serde_json::json!({ "rank": rank, "seen": true, "life": life, "issued": issued, "finished": finished })
        };
        let ranks: Vec<Value> =
            (0..4).map(|rank| seen(rank, if group == "8" { 20 } else { 19 })).collect();
        serde_json::json!({ "group": group, "tag": tag, "ranks": ranks })
    };
    let notes = |class: &str| {
        let dump = dumps.path().join("crossover.demo.tp.0000000000000007");
        keep(live.path(), &dump);
        let groups = [of("7", "tp"), of("8", "ep"), of("9", "dp")];
        let told =
            serde_json::json!({ "groups": groups, "verdicts": [{ "class": class, "group": "7" }] });
        fs::write(dump.join("verdict.json"), told.to_string()).expect("a file");
        let report = json(&diagnose(&[path(&dump), "--json"], live.path()), 1);
        report["notes"].clone()
    };
    assert_eq!(notes("not_arrived"), serde_json::json!([]));
    // Of groups in a circle all that wait are copied.
    let lost = "the dump has lost the rings of ranks 0, 1, 2 and 3 of `ep`";
    assert_eq!(notes("cross_group_deadlock"), serde_json::json!([lost]));
    drop(ranks);
}

#[test]
fn a_dump_says_what_it_said_when_it_was_written() {
    let (live, dumps) = (folder(), folder());
    let mut ranks = Ranks::new(live.path(), "demo", 7, 4);
    ranks.steps(0..6);
    for rank in [0, 2, 3] {
        ranks.begin(rank, STEP[0]);
    }
    let told = judged(live.path(), &[0, 1, 2, 3]);
    assert_eq!((told.verdicts[0].class, &told.verdicts[0].ranks), (Class::NotArrived, &vec![1]));
    // Ranks are freed before their rings are copied: one goes another way, one ends.
    ranks.begin(1, Call { count: 64, ..STEP[0] });
    ranks.lose(0);
    let names = ["crossover.demo.tp.7", "crossover.demo.tp.9"].map(|name| dumps.path().join(name));
    for dump in &names {
        keep(live.path(), dump);
        tell(&told, dump);
    }
    drop(ranks);
    let (one, all) = (path(&names[0]), path(dumps.path()));
    for target in [one, all] {
        let mut report = json(&diagnose(&[target, "--json"], live.path()), 1);
        let job = report["jobs"][0].as_object_mut().expect("a job");
        let written = job.remove("written").expect("a time");
        assert!(written.as_str().is_some_and(|at| at.ends_with(" UTC")), "{written}");
        assert_eq!(report["jobs"], serde_json::json!([told]), "{target}");
    }
    let output = diagnose(&[one], live.path());
    ended(&output, 1);
    let said = String::from_utf8_lossy(&output.stdout);
    let head = "job demo\nas it was when its dump was written, ";
    assert!(said.starts_with(head) && said.contains(" UTC\n\nnot_arrived: "), "{said}");
    assert!(said.contains("1     node-a:4101  running, open  24 "), "{said}");
    assert!(!said.contains("two looks"), "{said}");
    // What was said stays, without rings too.
    for rank in 0..4 {
        fs::remove_file(names[0].join(format!("{rank}.ring"))).expect("it is there");
    }
    let report = json(&diagnose(&[one, "--json"], live.path()), 1);
    assert_eq!(report["jobs"][0]["verdicts"][0]["class"], "not_arrived");
    let note = "the dump has lost the rings of ranks 0, 1, 2 and 3 of `tp`";
    assert_eq!(report["notes"], serde_json::json!([note]));
    let output = diagnose(&[one, "--timeline", "t.html"], live.path());
    ended(&output, 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no ring of `demo` can be read"));
}

#[test]
fn dumps_of_several_nodes_are_told_together() {
    let (live, dumps) = (folder(), folder());
    let ranks = odd_one(live.path(), Call { count: 64, ..STEP[0] });
    let whole = judged(live.path(), &[0, 1, 2, 3]);
    for node in [[0, 1], [2, 3]] {
        let dump = dumps.path().join(format!("crossover.demo.tp.7.node-of-{}", node[0]));
        keep(live.path(), &dump);
        for rank in (0..4).filter(|rank| !node.contains(rank)) {
            fs::remove_file(dump.join(format!("{rank}.ring"))).expect("it is there");
        }
        // A node alone cannot tell who is odd.
        let of_node =
            Verdict { class: Class::Ended, ranks: node.into(), ..whole.verdicts[0].clone() };
        let told = Diagnosis { verdicts: vec![of_node], ..judged(live.path(), &node) };
        assert!(!told.notes.is_empty(), "others were not seen");
        tell(&told, &dump);
    }
    drop(ranks);
    let report = json(&diagnose(&[path(dumps.path()), "--json"], live.path()), 1);
    assert_eq!(report["jobs"].as_array().map(Vec::len), Some(1));
    let job = &report["jobs"][0];
    let verdicts = job["verdicts"].as_array().expect("verdicts").iter();
    let found: Vec<_> = verdicts.map(|v| (v["class"].clone(), v["ranks"].clone())).collect();
    let expected = [("ended", vec![0, 1]), ("ended", vec![2, 3]), ("size_mismatch", vec![2])];
    assert_eq!(found, expected.map(|(class, ranks)| (class.into(), ranks.into())));
    let ranks = job["groups"][0]["ranks"].as_array().expect("ranks");
    assert!(ranks.iter().all(|rank| rank["seen"] == true && rank["life"] == "running"));
    assert_eq!(job["notes"], serde_json::json!([]));
}

#[test]
fn an_output_that_cannot_be_written_is_no_finding() {
    let folder = folder();
    let _alive = odd_one(folder.path(), Call { count: 64, ..STEP[0] });
    for options in [&["demo"][..], &["demo", "--json"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let output = Command::new(env!("CARGO_BIN_EXE_crossover"))
            .arg("diagnose")
            .args(options)
            .env("CROSSOVER_RECORD_DIR", folder.path())
            .stdout(full)
            .output()
            .expect("the program starts");
        ended(&output, 2);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("error: the output cannot be written: "), "{error}");
    }
}

#[test]
fn a_pipe_or_an_endless_file_in_the_verdicts_place_keeps_nobody() {
    for endless in ["pipe", "/dev/zero"] {
        let (live, dump) = (folder(), folder());
        let ranks = odd_one(live.path(), STEP[2]);
        keep(live.path(), dump.path());
        drop(ranks);
        let verdict = dump.path().join("verdict.json");
        if endless == "pipe" {
            let made = Command::new("mkfifo").arg(&verdict).status().expect("coreutils");
            assert!(made.success());
        } else {
            std::os::unix::fs::symlink(endless, &verdict).expect("a link");
        }
        let report = json(&diagnose(&[path(dump.path()), "--json"], live.path()), 1);
        assert_eq!(report["jobs"][0]["verdicts"][0]["ranks"], serde_json::json!([2]));
    }
}

#[test]
fn a_ring_that_is_cut_or_missing_is_a_note() {
    let (live, dump) = (folder(), folder());
    let _alive = odd_one(live.path(), Call { dtype: Dtype::F32, ..STEP[0] });
    keep(live.path(), dump.path());
    fs::remove_file(dump.path().join("0.ring")).expect("it is there");
    fs::write(dump.path().join("3.ring"), b"crossrec").expect("a file");
    let report = json(&diagnose(&[path(dump.path()), "--json"], live.path()), 1);
    let note = report["notes"][0].as_str().expect("a note");
    assert!(note.contains("3.ring: 8 B") && note.contains("it was cut"), "{note}");
    let ranks = &report["jobs"][0]["groups"][0]["ranks"];
    assert_eq!((&ranks[0]["seen"], &ranks[3]["seen"]), (&false.into(), &false.into()));
    assert_eq!(report["jobs"][0]["verdicts"][0]["class"], "argument_mismatch");

    for rank in [1, 2] {
        fs::write(dump.path().join(format!("{rank}.ring")), b"").expect("a file");
    }
    let output = diagnose(&[path(dump.path())], live.path());
    ended(&output, 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: no ring can be read: "));
}

#[test]
fn files_are_written_of_what_was_judged() {
    let (live, out) = (folder(), folder());
    let _alive = odd_one(live.path(), Call { count: 64, ..STEP[0] });
    let name = |name: &str| out.path().join(name).to_string_lossy().into_owned();
    let (page, trace, ranks) = (name("t.html"), name("t.json"), name("ranks"));
    let options =
        ["demo", "--timeline", &page, "--chrome-trace", &trace, "--flight-recorder", &ranks];
    ended(&diagnose(&options, live.path()), 1);
    let page = fs::read_to_string(&page).expect("a page");
    assert!(page.contains("all_reduce sum of 64 x bf16") && page.contains("class=\"first\""));
    let trace: Value = serde_json::from_slice(&fs::read(&trace).expect("a trace")).expect("JSON");
    // Four ranks' names, three events for each, and 25 records; the verdict's mark.
    assert_eq!(trace["traceEvents"].as_array().map(Vec::len), Some(4 * (3 + 25) + 1));
    for rank in 0..4 {
        assert!(Path::new(&ranks).join(format!("rank_{rank}")).is_file());
    }
    // Once more, over files of before.
    let output = diagnose(&options, live.path());
    ended(&output, 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not empty"));
    // What is mistyped must not vanish in a folder that is made for it.
    let (mistyped, new) = (name("mistyped/ranks"), name("new"));
    let output = diagnose(&["demo", "--flight-recorder", &mistyped], live.path());
    ended(&output, 2);
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = format!("{mistyped} cannot be made, since {} is not there", name("mistyped"));
    assert!(error.contains(&expected) && error.lines().count() == 1, "{error}");
    assert!(!Path::new(&name("mistyped")).exists());
    let output = diagnose(&["demo", "--flight-recorder", &format!("{new}/")], live.path());
    ended(&output, 1);
}

#[test]
fn a_job_with_a_folder_of_its_own_is_found_while_it_lives() {
    let (live, elsewhere) = (folder(), folder());
    let _alive = odd_one(live.path(), Call { count: 64, ..STEP[0] });
    let report = json(&diagnose(&["demo", "--json"], elsewhere.path()), 1);
    assert_eq!(report["jobs"][0]["verdicts"][0]["class"], "size_mismatch");
    assert_eq!(report["notes"], serde_json::json!([]));
}

#[test]
fn many_bad_rings_are_a_few_and_a_count() {
    let (live, dump) = (folder(), folder());
    let ranks = odd_one(live.path(), STEP[0]);
    keep(live.path(), dump.path());
    drop(ranks);
    for rank in 10..40 {
        fs::write(dump.path().join(format!("{rank}.ring")), b"crossrec").expect("a file");
    }
    let output = diagnose(&[path(dump.path())], live.path());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let notes: Vec<&str> = said.lines().filter(|line| line.starts_with("note: ")).collect();
    assert!(notes.len() == 5 && notes[4] == "note: and 26 more like these", "{said}");
    let report: Value =
        serde_json::from_slice(&diagnose(&[path(dump.path()), "--json"], live.path()).stdout)
            .expect("JSON alone");
    assert_eq!(report["notes"].as_array().map(Vec::len), Some(30), "all of them");
    for rank in 0..4 {
        fs::write(dump.path().join(format!("{rank}.ring")), b"").expect("a file");
    }
    let output = diagnose(&[path(dump.path())], live.path());
    ended(&output, 2);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.trim_end().ends_with("; and 30 more like these"), "{error}");
}

#[test]
fn files_are_of_one_job() {
    let live = folder();
    let mut one = Ranks::new(live.path(), "one", 1, 2);
    let mut two = Ranks::new(live.path(), "two", 2, 2);
    one.steps(0..1);
    two.steps(0..1);
    let page = live.path().join("t.html");
    let output = diagnose(&[path(live.path()), "--timeline", path(&page)], live.path());
    ended(&output, 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("the rings are of `one`, `two`"));
    assert!(!page.exists());
    ended(&diagnose(&["two", "--timeline", path(&page)], live.path()), 0);
    assert!(page.exists());
}
