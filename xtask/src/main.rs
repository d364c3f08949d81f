//! `cargo xtask`: what the workspace needs beside cargo itself, one file a command.

mod bench;
mod bundle;
mod kernels;
mod model;
mod mpi;
mod nccl;
mod test;
mod tidy;
mod vllm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;

/// Tasks of the workspace
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Measure this project beside other libraries of collectives
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Pack programs, device tests and kernels for a machine with a GPU and without Rust
    Bundle {
        /// The folder [default: target/bundle]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Such as sm90,gfx942 [default: what is built]
        #[arg(long, value_delimiter = ',')]
        arch: Vec<String>,
    },
    /// Compile the kernels into target/kernels, or check what was compiled
    #[command(subcommand)]
    Kernels(kernels::Kernels),
    /// Fetch the model of examples/tensor-parallel into target/models
    Model,
    /// Fetch MPICH with its header and launcher into target/toolchains, for the tests of backend-mpi
    Mpi,
    /// Fetch NCCL and its header into target/toolchains, for the tests of nccl-sys
    Nccl,
    /// Fetch RCCL and its header into target/toolchains, for the tests of nccl-sys (635 MB)
    Rccl {
        /// The header alone (26 kB)
        #[arg(long)]
        header: bool,
    },
    /// Run every test; the model, MPICH, NCCL and RCCL's header are fetched if they can be had
    Test,
    /// Check the house rules that a program can check
    Tidy,
    /// Build vLLM's all-reduce kernels in a loop like perf's, for a bundle
    Vllm,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("error: {why:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent")?;
    match Task::parse() {
        Task::Bench(bench) => bench::run(root, bench),
        Task::Bundle { out, arch } => bundle::run(root, out.as_deref(), &arch),
        Task::Kernels(kernels) => kernels::run(root, kernels),
        Task::Model => model::run(root),
        Task::Mpi => mpi::run(root),
        Task::Nccl => nccl::run(root),
        Task::Rccl { header: true } => nccl::rccl::header(root),
        Task::Rccl { header: false } => nccl::rccl::run(root),
        Task::Test => test::run(root),
        Task::Tidy => tidy::run(root),
        Task::Vllm => vllm::run(root),
    }
}

/// A line for the person at the terminal.
fn say(line: &str) {
    #[expect(clippy::print_stderr, reason = "a program")]
    {
        eprintln!("{line}");
    }
}
