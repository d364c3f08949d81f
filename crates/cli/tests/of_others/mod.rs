//! Rings that this user may not read.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::rings::{Call, STEP};
use super::{ended, folder, judged, odd_one, path, tell};

#[test]
fn a_job_of_another_user_is_told_of_as_theirs() {
    let (live, kept) = (folder(), folder());
    let _alive = odd_one(live.path(), Call { count: 64, ..STEP[0] });
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    mode(live.path(), 0o755);
    mode(kept.path(), 0o755);
    let told = judged(live.path(), &[0, 1, 2, 3]);
    // Where root runs this, a user that may not read; else files that nobody may read.
    let own = rustix::process::geteuid().as_raw();
    let program = live.path().join("crossover");
    fs::copy(env!("CARGO_BIN_EXE_crossover"), &program).expect("a copy");
    mode(&program, 0o755);
    let run = |target: &str| {
        let mut command = Command::new(&program);
        command.args(["diagnose", target]).env("CROSSOVER_RECORD_DIR", live.path());
        command.env("CROSSOVER_DUMP_DIR", kept.path());
        if own == 0 {
            command.uid(65534).gid(65534);
        }
        command.output().expect("the program starts")
    };
    if own != 0 {
        for entry in fs::read_dir(live.path()).expect("a folder").flatten() {
            if entry.file_name() != "crossover" {
                mode(&entry.path(), 0o000);
            }
        }
    }
    for target in ["demo", path(live.path())] {
        let output = run(target);
        ended(&output, 2);
        let error = String::from_utf8_lossy(&output.stderr);
        let expected = format!("4 rings of `demo` in {} are user ", live.path().display());
        assert!(error.contains(&expected), "{error}");
        assert!(error.contains("not readable by this user: `sudo -u "), "{error}");
        assert!(error.trim_end().ends_with(" crossover diagnose demo`"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let output = run("other");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("no job of that name has rings here"), "{error}");
    // This user's own job of the name has ended: what it left is not about the one that lives.
    let dump = kept.path().join("crossover.demo.tp.7");
    fs::create_dir(&dump).expect("a folder");
    tell(&told, &dump);
    let output = run("demo");
    ended(&output, 1);
    let text = String::from_utf8_lossy(&output.stdout);
    let notes: Vec<&str> = text.lines().filter(|line| line.starts_with("note: ")).collect();
    let [theirs, own_note, ..] = notes[..] else { panic!("two notes: {text}") };
    assert!(theirs.contains("note: 4 rings of `demo` in ") && theirs.ends_with("demo`"), "{text}");
    assert!(own_note.starts_with("note: this user's `demo` has no rings any more; "), "{text}");
    // A folder of theirs, such as that of their dumps.
    let dumps = live.path().join("dumps");
    fs::create_dir(&dumps).expect("a folder");
    mode(&dumps, if own == 0 { 0o700 } else { 0o000 });
    let output = run(path(&dumps));
    ended(&output, 2);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("dumps cannot be read: Permission denied"), "{error}");
    assert!(own != 0 || error.contains("it is user root (0)'s: run it as that user"), "{error}");
    mode(&dumps, 0o700);
}
