//! Files of other systems, and word for word what becomes of them.
//!
//! Beside each file of `tests/import` stand the policy that it becomes (`.toml`) and what is told
//! of it (`.losses`); beside each of `tests/import/wrong` what it is refused with (`.stderr`).
//! `BLESS=1 cargo test -p crossover-policy --test import` writes these anew; read the difference
//! before it is committed.

use std::path::{Path, PathBuf};

use crossover_policy::import::{Format, import};
use crossover_policy::{Diagnostic, Severity, Sources};

const FOLDER: &str = "../../tests/import/";

/// By the name's first part, as people sort such files.
fn format_of(path: &Path) -> Format {
    match name_of(path).split('-').next() {
        Some("nccl") => Format::NcclTuner,
        Some("ucc") => Format::UccTune,
        Some("openmpi") => Format::OpenMpi,
        other => panic!("{other:?} begins no format's name"),
    }
}

fn name_of(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn inputs(folder: &str, least: usize) -> Vec<PathBuf> {
    let inputs = ["conf", "txt", "json"];
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_input =
        |path: &PathBuf| path.extension().is_some_and(|e| inputs.iter().any(|i| e == *i));
    let mut paths: Vec<PathBuf> = entries.filter(is_input).collect();
    paths.sort();
    assert!(paths.len() >= least, "only {} files in {folder}: are they all there?", paths.len());
    paths
}

/// Compares with what is recorded beside the input, or records it.
fn compare(path: &Path, ending: &str, told: &str, changed: &mut Vec<String>) {
    let record = path.with_file_name(format!("{}.{ending}", name_of(path)));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&record, told).unwrap();
    }
    let recorded = std::fs::read_to_string(&record).unwrap_or_default();
    if told != recorded {
        let record = record.display();
        changed.push(format!("{record}\n--- told\n{told}--- recorded\n{recorded}"));
    }
}

fn all_of(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|d| format!("{d}\n\n")).collect()
}

#[test]
fn each_file_becomes_the_recorded_policy_with_the_recorded_losses() {
    let mut changed = Vec::new();
    for path in inputs(FOLDER, 7) {
        let text = std::fs::read_to_string(&path).unwrap();
        let imported = import(format_of(&path), name_of(&path), &text)
            .unwrap_or_else(|errors| panic!("{}", all_of(&errors)));
        compare(&path, "toml", &imported.policy, &mut changed);
        compare(&path, "losses", &all_of(&imported.losses), &mut changed);
        assert!(imported.losses.iter().all(|l| l.code.severity() == Severity::Warning));
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

/// What is written is what the parser of policies reads, by the names of the real backends.
#[test]
fn each_policy_loads() {
    let registry = crossover_backends::registry().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("imported.toml");
    for input in inputs(FOLDER, 7) {
        let text = std::fs::read_to_string(&input).unwrap();
        let policy = import(format_of(&input), name_of(&input), &text).unwrap().policy;
        std::fs::write(&path, &policy).unwrap();
        let loaded = Sources::isolated(vec![path.clone()]).load(&registry);
        let rules = loaded.unwrap_or_else(|e| panic!("{}: {e}", input.display())).policy;
        let is_imported = |file: &str| file == path.display().to_string();
        let loaded = rules.rules().iter().filter(|r| is_imported(&r.origin.file)).count();
        assert_eq!(loaded, policy.matches("\n[rule.").count(), "{}", input.display());
        assert!(loaded > 0, "{}: no rule", input.display());
    }
}

#[test]
fn each_wrong_file_is_refused_as_recorded() {
    let mut changed = Vec::new();
    for path in inputs(&format!("{FOLDER}wrong"), 15) {
        let text = std::fs::read_to_string(&path).unwrap();
        let errors = import(format_of(&path), name_of(&path), &text)
            .expect_err(&format!("{} must be wrong", path.display()));
        assert!(errors.iter().all(|e| e.code.severity() == Severity::Error));
        compare(&path, "stderr", &all_of(&errors), &mut changed);
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn a_name_cannot_break_out_of_the_file() {
    let name = "a\"b\\c\nd\u{7f}";
    let text = "allreduce,0,1,ring,ll,1,1,2\n";
    let policy = import(Format::NcclTuner, name, text).unwrap().policy;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, &policy).unwrap();
    let registry = crossover_backends::registry().unwrap();
    let loaded = Sources::isolated(vec![path]).load(&registry).unwrap_or_else(|e| panic!("{e}"));
    let rule = loaded.policy.rules().iter().find(|r| r.id == "nccl-tuner-1").unwrap();
    let from = rule.evidence.as_ref().and_then(|e| e.get("from"));
    assert_eq!(from, Some(&*format!("NCCL tuner: {name}")));
}

/// NCCL's plug-in reads 255 bytes at a time, and takes the rest of a line for a row.
#[test]
fn a_long_line_is_one_line() {
    let text = format!("# {}\nallreduce,0,1,ring,ll,1,1,2\n", "x".repeat(300));
    let losses = import(Format::NcclTuner, "long", &text).unwrap().losses;
    assert!(losses[0].message.contains("this line has 302 bytes"), "{}", losses[0]);
    let fits = format!("#{}\nallreduce,0,1,ring,ll,1,1,2\n", "x".repeat(254));
    let losses = import(Format::NcclTuner, "fits", &fits).unwrap().losses;
    assert!(losses.iter().all(|l| !l.message.contains("bytes:")));
}
