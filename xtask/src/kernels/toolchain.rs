//! Where compilers come from: the vendor's if installed, else packages in `target/toolchains`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::arch::Platform;

/// Pinned, with hashes.
const CUDA: &str = include_str!("cuda-requirements.txt");
/// [`CUDA`], beside the packages that were fetched by it.
const LIST: &str = "requirements.txt";
/// The compiler's version in [`CUDA`].
const CUDA_VERSION: &str = "13.0.88";
/// The distribution's clang with AMD's architectures of today.
const CLANG: &str = "22";

/// A platform's compiler, and what reads its objects.
#[derive(Debug)]
pub(super) struct Toolchain {
    /// Whose architectures it compiles for.
    pub(super) platform: Platform,
    /// The compiler.
    pub(super) compiler: PathBuf,
    /// Tells an object's kernels: cuobjdump, llvm-readobj, nm.
    pub(super) reader: PathBuf,
    /// Name and version, in one line.
    pub(super) version: String,
}

impl Toolchain {
    /// The one installed, else the one fetched, which is fetched now if it was not.
    ///
    /// # Errors
    ///
    /// It cannot be had: one sentence with what to do.
    pub(super) fn have(root: &Path, platform: Platform) -> Result<Self> {
        match Self::find(root, platform)? {
            Some(toolchain) => Ok(toolchain),
            None => match platform {
                Platform::Cuda => {
                    host_compiler()?; // before a long fetch
                    fetch_cuda(root)?;
                    Self::find(root, platform)?.context("nvcc is not in its own packages")
                }
                Platform::Hip => bail!(
                    "no compiler for AMD: set ROCM_PATH, or \
                     apt-get install --no-install-recommends clang-{CLANG} lld-{CLANG} llvm-{CLANG}"
                ),
                Platform::Host => bail!("g++ is not there: apt-get install g++"),
            },
        }
    }

    /// What is on this machine; fetches nothing.
    pub(super) fn find(root: &Path, platform: Platform) -> Result<Option<Self>> {
        let found = match platform {
            Platform::Cuda => from_home("CUDA_HOME", "", "bin/nvcc")
                .or_else(|| on_path("nvcc"))
                .or_else(|| fetched_cuda(root))
                .map(|nvcc| (nvcc.with_file_name("cuobjdump"), nvcc)),
            Platform::Hip => from_home("ROCM_PATH", "/opt/rocm", "llvm/bin/clang++")
                .map(|clang| (clang.with_file_name("llvm-readobj"), clang))
                .or_else(|| {
                    let clang = on_path(&format!("clang++-{CLANG}"))?;
                    Some((clang.with_file_name(format!("llvm-readobj-{CLANG}")), clang))
                }),
            Platform::Host => on_path("g++").map(|gcc| (gcc.with_file_name("nm"), gcc)),
        };
        let Some((reader, compiler)) = found else { return Ok(None) };
        ensure!(
            reader.exists(),
            "{} is not there, but {} is: install it too",
            reader.display(),
            compiler.display()
        );
        if platform == Platform::Cuda {
            host_compiler()?;
        }
        let version = version(&compiler)?;
        Ok(Some(Self { platform, compiler, reader, version }))
    }
}

/// A program below the folder that a variable names, or below a folder where it usually is.
fn from_home(variable: &str, usual: &str, program: &str) -> Option<PathBuf> {
    let home = env::var_os(variable).filter(|home| !home.is_empty());
    let path = home.map_or_else(|| PathBuf::from(usual), PathBuf::from).join(program);
    (path.is_absolute() && path.exists()).then_some(path)
}

fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// nvcc preprocesses with it.
fn host_compiler() -> Result<()> {
    let is_named = env::var_os("NVCC_CCBIN").is_some_and(|it| !it.is_empty());
    ensure!(
        is_named || on_path("gcc").is_some(),
        "gcc is not on PATH, and nvcc needs it: apt-get install g++, or name it in NVCC_CCBIN"
    );
    Ok(())
}

/// The line of `--version` that has the version: nvcc's is not the first.
fn version(compiler: &Path) -> Result<String> {
    let name = compiler.file_name().unwrap_or_default().display().to_string();
    let output = Command::new(compiler).arg("--version").output();
    let output = output.with_context(|| format!("{} cannot be run", compiler.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains(", V")).or_else(|| text.lines().next());
    Ok(format!("{name}: {}", line.unwrap_or("no version").trim()))
}

/// nvcc of the packages that are pinned now, if they were fetched.
fn fetched_cuda(root: &Path) -> Option<PathBuf> {
    let packages = cuda_packages(root);
    let is_pinned = fs::read_to_string(packages.join(LIST)).is_ok_and(|list| list == CUDA);
    is_pinned.then(|| packages.join("nvidia/cu13/bin/nvcc"))
}

fn cuda_packages(root: &Path) -> PathBuf {
    root.join(format!("target/toolchains/cuda-{CUDA_VERSION}"))
}

/// Fetches CUDA's compiler: about 100 MB, 260 MB unpacked.
fn fetch_cuda(root: &Path) -> Result<()> {
    let whole = cuda_packages(root);
    crate::say(&format!("fetching CUDA's compiler {CUDA_VERSION} into {}", whole.display()));
    let part = whole.with_extension("part");
    for old in [&part, &whole] {
        if old.exists() {
            fs::remove_dir_all(old)?; // a fetch that was broken off, or of other packages
        }
    }
    fs::create_dir_all(&part)?;
    let list = part.join(LIST);
    fs::write(&list, CUDA)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "--require-hashes", "--retries", "2", "--target"]);
    pip.arg(&part).arg("-r").arg(&list).env("PIP_ROOT_USER_ACTION", "ignore");
    let wanted = "no CUDA compiler (neither CUDA_HOME nor nvcc on PATH), and its packages cannot be \
                  fetched: it takes python3 with pip, and a package index";
    let output = pip.output().context(wanted)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{wanted}: {}", said.lines().next_back().unwrap_or("no message").trim());
    }
    // The packages lack the name by which nvcc looks for libraries to link.
    std::os::unix::fs::symlink("lib", part.join("nvidia/cu13/lib64"))?;
    fs::rename(&part, &whole)?;
    Ok(())
}
