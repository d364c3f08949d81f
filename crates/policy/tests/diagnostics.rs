//! Wrong policies, and word for word what people are told about them.
//!
//! Each `tests/diagnostics/*.toml` of the repository is loaded over the floor; the message must
//! equal the `*.stderr` beside it. `BLESS=1 cargo test -p crossover-policy --test diagnostics`
//! writes these files anew; read the difference before it is committed.

mod support;

use std::path::PathBuf;

use crossover_policy::Sources;
use support::Records;

/// Relative, as the test program runs in its crate's folder: so that messages are the same
/// everywhere.
const FOLDER: &str = "../../tests/diagnostics/";

#[test]
fn each_wrong_policy_is_told_as_recorded() {
    let registry = support::registry();
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    assert!(paths.len() >= 20, "only {} files in {FOLDER}: are they all there?", paths.len());
    let mut records = Records::default();
    for path in paths {
        let error = Sources::isolated(vec![path.clone()])
            .load(&registry)
            .expect_err(&format!("{} must be wrong", path.display()));
        let told = error.to_string().replace(FOLDER, "") + "\n";
        records.compare(&path.with_extension("stderr"), &told);
    }
    records.assert_unchanged();
}
