//! The program's transcripts: `tests/cli/*.md` at the top of the repository, and the guide
//! to policies. What they promise is
//! the command line's text; what programs read is tested in `reports.rs`.
//!
//! `TRYCMD=overwrite cargo test -p crossover-cli` writes them anew: read the difference.

mod rings;

use std::panic::{catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rings::{Call, Ranks, STEP};

#[test]
fn transcripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli");
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md");
    let program = Path::new(env!("CARGO_BIN_EXE_crossover"));
    let program_folder = program.parent().expect("a program lies in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let rings = tempfile::tempdir().expect("a folder");
    let (jobs, is_over) = (jobs(rings.path()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // Ranks that live have a watchdog, however long the transcripts before theirs take.
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                jobs.iter().for_each(Ranks::look);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let run = || {
            trycmd::TestCases::new()
                .case(format!("{folder}/*.md"))
                .case(guide)
                // A launched rank may be this program as well.
                .env("PATH", format!("{program_folder}:{path}"))
                .env("CROSSOVER_RECORD_DIR", rings.path().display().to_string())
                .run();
        };
        let ran = catch_unwind(run);
        is_over.store(true, Relaxed);
        if let Err(panic) = ran {
            resume_unwind(panic);
        }
    });
}

/// What `diagnose.md` is about.
fn jobs(folder: &Path) -> Vec<Ranks> {
    let job = |name: &str, number| {
        let mut ranks = Ranks::new(folder, name, number, 4);
        ranks.steps(0..6);
        ranks
    };
    let mut jobs = [job("well", 1), job("odd-size", 2), job("drift", 3), job("crash", 4)];
    let [_, odd_size, drift, crash] = &mut jobs;
    for rank in 0..4 {
        let odd = Call { count: 64, ..STEP[0] };
        odd_size.begin(rank, if rank == 2 { odd } else { STEP[0] });
        drift.note(rank, 6, if rank == 1 { 0x9F } else { 0x3C });
        let odd = Call { op: crossover_core::call::Op::AllGather, ..STEP[0] };
        drift.begin(rank, if rank == 1 { odd } else { STEP[0] });
        crash.begin(rank, STEP[0]);
    }
    crash.lose(3);
    jobs.into()
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
