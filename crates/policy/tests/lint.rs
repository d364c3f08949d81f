//! What the lint finds, word for word, with the backends of this workspace.
//!
//! Each `tests/lint/*.toml` is linted over the floor; what is told must equal the `*.stderr` beside
//! it. `BLESS=1 cargo test -p crossover-policy --test lint` writes these files anew; read the
//! difference before it is committed.

mod support;

use std::path::PathBuf;

use crossover_policy::Sources;
use crossover_policy::lint::{Options, lint};
use support::Records;

/// Relative, as the test program runs in its crate's folder.
const FOLDER: &str = "tests/lint/";

#[test]
fn each_file_is_told_as_recorded() {
    let registry = crossover_backends::registry().unwrap();
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    assert!(paths.len() >= 15, "only {} files in {FOLDER}: are they all there?", paths.len());
    let mut records = Records::default();
    for path in paths {
        let report = lint(&Sources::isolated(vec![path.clone()]), &registry, &Options::default());
        let report = report.unwrap_or_else(|e| panic!("{e}"));
        // Each file is named after the only code that it shows.
        let code = path.file_name().unwrap().to_str().unwrap().split('-').next().unwrap();
        for finding in &report.findings {
            assert_eq!(finding.code.name(), code, "{finding}");
        }
        let told: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        let told = told.join("\n\n").replace(FOLDER, "") + "\n";
        records.compare(&path.with_extension("stderr"), &told);
    }
    records.assert_unchanged();
}
