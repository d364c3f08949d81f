//! The program's transcripts: `tests/cli/*.md` at the top of the repository, and the guide
//! to policies. What they promise is
//! the command line's text; what programs read is tested in `reports.rs`.
//!
//! `TRYCMD=overwrite cargo test -p crossover-cli` writes them anew: read the difference.

use std::path::Path;

#[test]
fn transcripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli");
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md");
    let program = Path::new(env!("CARGO_BIN_EXE_crossover"));
    let program_folder = program.parent().expect("a program lies in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    trycmd::TestCases::new()
        .case(format!("{folder}/*.md"))
        .case(guide)
        // A launched rank may be this program as well.
        .env("PATH", format!("{program_folder}:{path}"))
        .run();
}

/// What README's first screen shows of `explain` is what the program says today.
#[test]
fn the_readme_explains_as_the_program_does() {
    let readme = include_str!("../../../README.md");
    let (_, after) = readme.split_once("$ crossover explain ").expect("README shows explain");
    let (options, after) = after.split_once('\n').expect("a line");
    let (shown, _) = after.split_once("```").expect("the end of the block");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_crossover"))
        .arg("explain")
        .args(options.split_whitespace())
        .env_clear()
        .output()
        .expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), shown);
}
