//! An engine in Python, by ctypes alone, on host memory; and the witness of PyTorch, where that is here.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

/// `program` as the ranks of a job, told their places as a launcher tells them.
fn ranks(program: &str, arguments: &[&str], folder: &Path, world: u32) -> Vec<Command> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/witness").join(program);
    let library: PathBuf = folder.join("libcrossover.so");
    let rank = |rank: u32| {
        let mut command = Command::new("python3");
        command
            .arg("-B")
            .arg(&script)
            .args(arguments)
            .env("LIBCROSSOVER", &library)
            .env("CROSSOVER_RANK", rank.to_string())
            .env("CROSSOVER_WORLD_SIZE", world.to_string())
            .env("CROSSOVER_LOCAL_RANK", rank.to_string())
            .env("CROSSOVER_LOCAL_WORLD_SIZE", world.to_string())
            .env("CROSSOVER_JOB", "python")
            .env("CROSSOVER_RENDEZVOUS", format!("unix:{}/meet-{world}", folder.display()));
        command
    };
    (0..world).map(rank).collect()
}

#[test]
fn engines_in_python_get_what_they_ask_for_and_a_sentence_where_not() {
    if !support::is_there("python3", "the Python engine") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    support::library(folder.path());
    for world in [1, 2, 3] {
        let said = support::succeed(ranks("host.py", &[], folder.path(), world).into_iter());
        for (rank, text) in said.iter().enumerate() {
            let start = format!("rank {rank} of {world}: ");
            assert!(text.starts_with(&start) && text.ends_with(" checks hold\n"), "{text}");
        }
    }
}

/// What it does on a device, but for streams and graphs.
#[test]
fn the_witness_of_pytorch_finds_no_wrong_bit_on_host_memory() {
    let torch = Command::new("python3").args(["-c", "import torch"]).output();
    if !torch.is_ok_and(|output| output.status.success()) {
        use std::io::Write as _;
        let _ =
            writeln!(std::io::stderr(), "skipped: the witness takes PyTorch, which is not here");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    support::library(folder.path());
    for world in [2, 3] {
        let arguments = ["--device", "host", "--quick"];
        let said =
            support::succeed(ranks("witness.py", &arguments, folder.path(), world).into_iter());
        assert!(said[0].contains("\"wrong\": 0"), "{}", said[0]);
    }
}
