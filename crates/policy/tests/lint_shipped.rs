//! Every shipped policy lints clean with the backends of this workspace, and in no time.
#![allow(clippy::print_stdout, reason = "how long each file takes is worth seeing")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossover_core::registry::Registry;
use crossover_policy::lint::{Options, lint};
use crossover_policy::{Override, Settings, Sources};

const FOLDER: &str = "../../policies";

#[test]
fn every_shipped_file_lints_clean() {
    let registry = crossover_backends::registry().unwrap();
    let mut told = Vec::new();
    let mut slowest = (Duration::ZERO, PathBuf::new());
    for file in files(Path::new(FOLDER)) {
        for (how, sources) in [
            ("by itself", Sources::isolated(vec![file.clone()])),
            ("over the packs", over_the_packs(&file, &registry)),
        ] {
            let start = Instant::now();
            let report = lint(&sources, &registry, &Options::default());
            let report = report.unwrap_or_else(|e| panic!("{e}"));
            let took = start.elapsed();
            println!("{} {how}: {} decisions in {took:.1?}", file.display(), report.decisions);
            slowest = slowest.max((took, file.clone()));
            told.extend(report.findings.iter().map(|finding| format!("{how}: {finding}")));
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n\n"));
    assert!(slowest.0 < Duration::from_secs(2), "{slowest:?}");
}

/// The floor with each pack, as they lie on a machine, with nothing of anybody's laid over.
#[test]
fn every_pack_lints_clean_in_its_place() {
    let registry = crossover_backends::registry().unwrap();
    let report = lint(&Sources::shipped("host"), &registry, &Options::default()).unwrap();
    let told: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
    assert!(report.decisions > 0);
}

/// As a user names it, on a node that has no files of its own.
fn over_the_packs(file: &Path, registry: &Registry) -> Sources {
    let below = file.strip_prefix(FOLDER).unwrap();
    let named = Override {
        key: "policy".to_owned(),
        value: format!("shipped:{}", below.display()),
        origin: "--policy".to_owned(),
    };
    let variables = std::iter::empty::<(std::ffi::OsString, std::ffi::OsString)>();
    let settings = Settings::load(variables, &[named], registry).unwrap();
    Sources::of(&settings, "").with_site(PathBuf::from("no such folder"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|end| end == "toml") {
            files.push(path);
        }
    }
    files.sort();
    files
}
