//! Programs that use the library as an engine does: from outside.

use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a job may take before it is ended: minutes under load, for what takes a second.
const DEADLINE: Duration = Duration::from_secs(120);

/// The library that cargo has built beside this test, under the name by which engines find it.
pub(crate) fn library(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let built = test.with_file_name("libcrossover_plugin.so");
    assert!(built.exists(), "{} is not there", built.display());
    let installed = folder.join("libcrossover.so");
    std::os::unix::fs::symlink(built, &installed).expect("a link");
    installed
}

/// Is there such a program? Where not, says in words what is skipped.
pub(crate) fn is_there(program: &str, what: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "skipped: {what} takes {program}, which is not here");
    }
    found
}

/// Runs all ranks to their end, none of which may fail; what each wrote.
pub(crate) fn succeed(ranks: impl Iterator<Item = Command>) -> Vec<String> {
    let mut all: Vec<(Child, std::fs::File)> = ranks
        .map(|mut command| {
            let file = tempfile::tempfile().expect("a file");
            command.stdout(file.try_clone().expect("the file"));
            command.stderr(file.try_clone().expect("the file"));
            // What is told of a group that ends on purpose is nobody's here.
            command.env("CROSSOVER_LOG", "off").env("CROSSOVER_DUMP_DIR", "none");
            (command.spawn().expect("the program can be started"), file)
        })
        .collect();
    let until = Instant::now() + DEADLINE;
    let mut failed = Vec::new();
    let mut said = Vec::new();
    for (rank, (child, file)) in all.iter_mut().enumerate() {
        let status = loop {
            if let Some(status) = child.try_wait().expect("its status") {
                break Some(status);
            }
            if Instant::now() >= until {
                child.kill().expect("it can be ended");
                child.wait().expect("it ends");
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut text = String::new();
        file.rewind().expect("the file's start");
        file.read_to_string(&mut text).expect("text");
        if !status.is_some_and(|status| status.success()) {
            let how = status.map_or("did not end in time".to_owned(), |status| status.to_string());
            failed.push(format!("rank {rank}: {how}\n{text}"));
        }
        said.push(text);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    said
}
