//! Files of other systems, and word for word what becomes of them.
//!
//! Beside each file of `tests/import` stand the policy that it becomes (`.toml`), what is lost
//! (`.losses`) and how it was read (`.notes`); beside each of `tests/import/wrong` what it is refused
//! with (`.stderr`).
//! `BLESS=1 cargo test -p crossover-policy --test import` writes these anew; read the difference
//! before it is committed.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossover_policy::import::{Format, import};
use crossover_policy::{Code, Diagnostic, Severity, Sources};
use support::Records;

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

/// Where it is recorded, beside the input.
fn record(path: &Path, ending: &str) -> PathBuf {
    path.with_file_name(format!("{}.{ending}", name_of(path)))
}

fn all_of(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|d| format!("{d}\n\n")).collect()
}

#[test]
fn each_file_becomes_the_recorded_policy_with_the_recorded_losses() {
    let mut records = Records::default();
    for path in inputs(FOLDER, 7) {
        let text = std::fs::read_to_string(&path).unwrap();
        let imported = import(format_of(&path), name_of(&path), &text)
            .unwrap_or_else(|errors| panic!("{}", all_of(&errors)));
        records.compare(&record(&path, "toml"), &imported.policy);
        records.compare(&record(&path, "losses"), &all_of(&imported.losses));
        records.compare(&record(&path, "notes"), &all_of(&imported.notes));
        assert!(imported.losses.iter().all(|l| l.code == Code::Loss));
        assert!(imported.notes.iter().all(|n| n.code == Code::Note));
    }
    records.assert_unchanged();
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
    let mut records = Records::default();
    for path in inputs(&format!("{FOLDER}wrong"), 15) {
        let text = std::fs::read_to_string(&path).unwrap();
        let errors = import(format_of(&path), name_of(&path), &text)
            .expect_err(&format!("{} must be wrong", path.display()));
        assert!(errors.iter().all(|e| e.code.severity() == Severity::Error));
        records.compare(&record(&path, "stderr"), &all_of(&errors));
    }
    records.assert_unchanged();
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
    let notes = import(Format::NcclTuner, "long", &text).unwrap().notes;
    assert!(notes.iter().any(|n| n.message.contains("this line has 302 bytes")), "{notes:?}");
    let fits = format!("#{}\nallreduce,0,1,ring,ll,1,1,2\n", "x".repeat(254));
    let notes = import(Format::NcclTuner, "fits", &fits).unwrap().notes;
    assert!(notes.iter().all(|n| !n.message.contains("bytes:")));
}

/// Nothing of a plain table is lost, however its ends, its wildcards and its order are written.
#[test]
fn a_plain_table_loses_nothing() {
    let text = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n\
                allreduce,0,65536,tree,ll,2,-1,-1\n\
                allreduce,0,4294967295,ring,simple,-1,-1,-1\n";
    let imported = import(Format::NcclTuner, "plain", text).unwrap();
    assert_eq!(all_of(&imported.losses), "");
    assert!(all_of(&imported.notes).starts_with("note[N022]: "), "{}", all_of(&imported.notes));
    assert!(!imported.policy.contains("# Lost"), "{}", imported.policy);
    let lost = text.replace("simple,-1,-1,-1", "simple,-1,-1,-1,4");
    let lost = import(Format::NcclTuner, "lost", &lost).unwrap().losses;
    assert_eq!(lost.len(), 1, "{}", all_of(&lost));
    assert!(lost[0].to_string().starts_with("warning[W021]: the row is for 4 calls"));
}

#[test]
fn a_header_of_other_names_is_one_mistake() {
    for header in ["coll,min,max,algo,proto,chan,nodes,ranks", "collective_type,min,max,a,p,c,n,r"]
    {
        let text = format!("# tuned\n{header}\nallreduce,0,1,ring,ll,1,1,2\n");
        let errors = import(Format::NcclTuner, "header", &text).unwrap_err();
        let [error] = &errors[..] else { panic!("{}", all_of(&errors)) };
        assert_eq!(error.message, "line 2 looks like a header: begin it with `#`");
    }
    let errors = import(Format::NcclTuner, "short", "allreduce\n").unwrap_err();
    assert!(errors[0].message.starts_with("the row has 1 field, and no "), "{}", errors[0].message);
    // A row with typing errors is still a row.
    let errors = import(Format::NcclTuner, "row", "allreduc,0,1,rng,ll,1,1,2\n").unwrap_err();
    assert_eq!(errors.len(), 2, "{}", all_of(&errors));
}

/// UCC refuses the second, in its log alone.
#[test]
fn an_entry_written_twice_is_refused() {
    for (text, is_right) in [
        ("allreduce:0-4k:host:inf#allreduce:0-4k:host:inf", false),
        ("allreduce:0-4k:host:inf#allreduce:2k-8k:host:inf", false),
        ("allreduce:0-4k,2k-8k:host:inf", false),
        ("allreduce:0-4k:host:inf#inf", false),
        ("allreduce:0-4k:host:inf#allreduce:4k-8k:host:inf", true),
        ("allreduce:0-4k:host:[2-4]:inf#allreduce:0-4k:host:[5-8]:inf", true),
        ("allreduce:0-4k:host:[2-8,4]:inf", true),
        ("allreduce:0-4k:host:inf#allgather:0-4k:host:inf", true),
    ] {
        match import(Format::UccTune, "twice", text) {
            Ok(_) => assert!(is_right, "{text}"),
            Err(errors) => {
                assert!(!is_right && errors.len() == 1, "{text}\n{}", all_of(&errors));
                assert!(errors[0].message.starts_with("overlaps `allreduce:0-4k"), "{}", errors[0]);
            }
        }
    }
}

#[test]
fn rules_for_groups_that_cannot_be_are_lost_and_not_silently() {
    for (least, most, why) in [
        ("0", "0", "a group of one rank copies, and none is smaller"),
        ("1", "1", "a group of one rank copies, and none is smaller"),
        ("\"inf\"", "\"inf\"", "no group has so many ranks"),
    ] {
        let text = format!(
            r#"{{"rule_file_version":3,"module":"tuned","collectives":{{"alltoall":[
               {{"comm_size_min":{least},"comm_size_max":{most},"rules":[{{"alg":"linear"}}]}}]}}}}"#
        );
        let imported = import(Format::OpenMpi, "none", &text).unwrap();
        let told = all_of(&imported.losses);
        assert!(told.contains(why) && told.contains("none:2:"), "{least}..={most}: {told}");
        assert!(!imported.policy.contains("[rule."), "{}", imported.policy);
    }
}

/// What is no table at all, or a table without an end: a word of it is quoted, and not the file.
#[test]
fn a_large_file_is_refused_at_once_and_in_few_words() {
    const SIZE: usize = 1_000_000;
    let repeated = |part: &str| part.repeat(SIZE / part.len());
    let ranges =
        |of: &str| (0..60_000).map(|n| of.replace('N', &n.to_string())).collect::<String>();
    let sets = ranges(r#",{"comm_size_min":N}"#);
    let texts = [
        repeated("a"),
        repeated("a b "),
        repeated(":"),
        repeated("x#"),
        repeated("1\n"),
        repeated("the quick brown fox\n"),
        repeated("allreduce#"),
        repeated("barrier:inf#"),
        repeated("UCC_A=b\n"),
        format!("@{}", repeated("a")),
        format!("[{}", repeated("1,")),
        format!("[{}]:inf", ranges("N,")),
        ranges("allreduce:N-inf:[N]:inf#"),
        ranges("allreduce,N,N,ring,ll,1,1,2\n"),
        repeated("allreduce,0,9,ring,ll,1,1,2\n"),
        format!("{{{}}}", ranges(r#""keyN":1,"#).trim_end_matches(',')),
        format!(
            r#"{{"rule_file_version":3,"module":"tuned","collectives":{{"allreduce":[{}]}}}}"#,
            &sets[1..]
        ),
    ];
    for format in [Format::NcclTuner, Format::OpenMpi, Format::UccTune] {
        for text in &texts {
            let start = Instant::now();
            let imported = import(format, "large", text);
            let (took, head) = (start.elapsed(), &text[..40]);
            assert!(took < Duration::from_secs(3), "{format}, {head:?}: {took:?}");
            let Err(errors) = imported else { continue };
            assert!(errors.len() <= 52, "{format}, {head:?}: {}", errors.len());
            for error in &errors {
                let told = error.to_string();
                assert!(told.len() < 1000, "{format}, {head:?}: {told}");
            }
        }
    }
}

/// What is left out of a list is counted, and what is left out of a word is shown to be.
#[test]
fn of_many_errors_the_first_are_listed_and_of_a_long_word_the_beginning() {
    let errors = import(Format::UccTune, "many", &"x\n".repeat(80)).unwrap_err();
    assert_eq!(errors.len(), 51);
    let last = errors.last().unwrap();
    assert_eq!((last.line, &*last.message), (51, "30 more of such errors, from here on"));
    let text = format!("allreduce:{}:inf", "y".repeat(500));
    let errors = import(Format::UccTune, "long", &text).unwrap_err();
    let quoted = format!("unknown word or collective `{}..`", "y".repeat(60));
    assert_eq!((errors[0].line, errors[0].column, &errors[0].message), (1, 11, &quoted));
    let rows: String = (0..4001).map(|n| format!("allreduce,{n},{n},ring,ll,1,1,2\n")).collect();
    let errors = import(Format::NcclTuner, "rows", &rows).unwrap_err();
    assert_eq!((errors.len(), errors[0].line), (1, 4001), "{}", all_of(&errors));
    let fits = rows.rsplit_once("allreduce,").unwrap().0;
    assert!(import(Format::NcclTuner, "fits", fits).is_ok());
}
