//! `cargo xtask vllm`: vLLM's all-reduce kernels in a loop like `crossover perf`'s, for a machine with a GPU.
//!
//! Two headers of its source package are fetched, and built with `tests/peers/vllm/main.cu` by CUDA's compiler. The program
//! lies in `target/peers/vllm`, from where a bundle takes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::kernels;

const VERSION: &str = "0.33.0";
const SHA256: &str = "f4c33c2503d52bb411146afa9618a4f48bed68912f617e6803ac8d76e4c74112";
const HEADERS: [&str; 2] = ["custom_all_reduce.cuh", "custom_collective_common.cuh"];
const FETCH: &str = include_str!("fetch.py");
/// Architectures that the program runs on: those that vLLM tunes its tables for.
const ARCHES: [&str; 3] = ["80", "90", "100"];

/// The program, built or not.
pub(crate) fn program(root: &Path) -> PathBuf {
    root.join("target/peers/vllm/vllm")
}

/// Fetches 47 MB, of which it keeps two headers, and builds.
///
/// # Errors
///
/// It cannot be had, or does not compile.
pub(crate) fn run(root: &Path) -> Result<()> {
    let program = program(root);
    let headers = program.with_file_name(format!("vllm-{VERSION}"));
    if HEADERS.iter().any(|header| !headers.join(header).exists()) {
        fetch(&headers)?;
    }
    let mut nvcc = Command::new(kernels::nvcc(root)?);
    nvcc.args(["-std=c++20", "-O3", "-I"]).arg(&headers).arg("-o").arg(&program);
    for arch in ARCHES {
        nvcc.arg(format!("-gencode=arch=compute_{arch},code=sm_{arch}"));
    }
    nvcc.arg(root.join("tests/peers/vllm/main.cu"));
    let status = nvcc.status().context("nvcc cannot be run")?;
    if !status.success() {
        bail!("tests/peers/vllm/main.cu does not compile");
    }
    crate::say(&format!("{}", program.display()));
    Ok(())
}

fn fetch(headers: &Path) -> Result<()> {
    crate::say(&format!("fetching vLLM {VERSION} for its headers"));
    let part = headers.with_extension("part");
    fs::create_dir_all(&part)?;
    let inside = |header| format!("vllm-{VERSION}/csrc/{header}");
    let mut python = Command::new("python3");
    python.args(["-c", FETCH, "vllm", &format!("vllm-{VERSION}.tar.gz"), SHA256]).arg(&part);
    python.args(HEADERS.map(inside));
    let wanted = "vLLM's headers cannot be fetched: it takes python3 with pip, and a package index";
    let output = python.output().context(wanted)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{wanted}: {}", said.lines().next_back().unwrap_or("no message").trim());
    }
    // One that lacks a header is in the way.
    if headers.exists() {
        fs::remove_dir_all(headers)?;
    }
    fs::rename(&part, headers)?;
    Ok(())
}
