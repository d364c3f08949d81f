//! One source, compiled: the command, and what its object holds.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::arch::{Arch, Platform};
use super::manifest::Kernel;
use super::sources::Source;
use super::toolchain::Toolchain;
use super::usage;

/// Floating point is never contracted: a fused multiply-add rounds once where the contract says twice.
fn flags(arch: Arch) -> Vec<String> {
    let own: Vec<String> = match arch.platform {
        Platform::Cuda => {
            let code = arch.code;
            let target = format!("arch=compute_{code},code=sm_{code}");
            // -lineinfo: a sanitizer's finding names a line. -v: spills are told nowhere else.
            ["-x", "cu", "-O3", "-fmad=false", "-lineinfo", "-Xptxas", "-v", "--fatbin", "-gencode"]
                .map(str::to_owned)
                .into_iter()
                .chain([target])
                .collect()
        }
        Platform::Hip => {
            let device = format!("--offload-arch={}", arch.code);
            ["-x", "hip", "-O3", "-ffp-contract=off", "-nogpuinc", "-nogpulib"]
                .into_iter()
                .chain(["--cuda-device-only", "--no-gpu-bundle-output"])
                .map(str::to_owned)
                .chain([device])
                .collect()
        }
        Platform::Host => {
            // What a kernel sets in its first turn of a loop, g++ takes for never set; it knows
            // `#pragma unroll` by another name.
            let warnings = ["-Wall", "-Wno-maybe-uninitialized", "-Wno-unknown-pragmas"];
            ["-O2", "-g", "-ffp-contract=off", "-fPIC", "-pthread", "-c"]
                .into_iter()
                .chain(warnings)
                .map(str::to_owned)
                .collect()
        }
    };
    let common = ["-std=c++17", "-I", arch.platform.folder(), "-I", "kernels-common"];
    common.map(str::to_owned).into_iter().chain(own).collect()
}

/// All that decides how a source is compiled, for its digest.
pub(super) fn how(toolchain: &Toolchain, arch: Arch) -> Vec<String> {
    flags(arch).into_iter().chain([toolchain.version.clone()]).collect()
}

/// Compiles a source into `object`; what the compiler remarks is shown.
///
/// # Errors
///
/// The compiler refuses it: its own text, and the command.
pub(super) fn compile(
    root: &Path,
    toolchain: &Toolchain,
    arch: Arch,
    source: &Source,
    object: &Path,
) -> Result<Vec<Kernel>> {
    let mut command = Command::new(&toolchain.compiler);
    command.current_dir(root).args(flags(arch)).arg("-o").arg(object).arg(&source.path);
    let said = tell(&mut command)?;
    let remarks: Vec<_> = said.stderr.lines().filter(|line| !is_report(line)).collect();
    if !remarks.is_empty() {
        crate::say(&remarks.join("\n"));
    }
    let kernels = match arch.platform {
        _ if !source.is_kernel => return Ok(Vec::new()),
        Platform::Cuda => {
            let read = |what| tell(Command::new(&toolchain.reader).arg(what).arg(object));
            usage::cuda(&said.stderr, &read("-res-usage")?.stdout, &read("-elf")?.stdout)
        }
        Platform::Hip => {
            usage::hip(&tell(Command::new(&toolchain.reader).arg("--notes").arg(object))?.stdout)
        }
        Platform::Host => usage::host(
            &tell(Command::new(&toolchain.reader).args(["-g", "--defined-only"]).arg(object))?
                .stdout,
        ),
    };
    let mut kernels = kernels.with_context(|| format!("{}: what it holds", object.display()))?;
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    if kernels.is_empty() {
        bail!("{}: it defines no kernel", source.path.display());
    }
    Ok(kernels)
}

/// What ptxas reports of every kernel, which is no remark.
fn is_report(line: &str) -> bool {
    line.is_empty() || line.starts_with("ptxas info") || line.contains("bytes stack frame")
}

/// Links the host's objects into one library.
pub(super) fn link(
    root: &Path,
    toolchain: &Toolchain,
    objects: &[PathBuf],
    library: &Path,
) -> Result<()> {
    let mut command = Command::new(&toolchain.compiler);
    command.current_dir(root).args(["-shared", "-pthread", "-o"]).arg(library).args(objects);
    tell(&mut command).map(drop)
}

/// What a program said.
pub(super) struct Said {
    /// On its output.
    pub(super) stdout: String,
    /// Beside it.
    pub(super) stderr: String,
}

/// Runs a program to its end.
pub(super) fn tell(command: &mut Command) -> Result<Said> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("{program} cannot be run"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = Said { stdout: text(&output.stdout), stderr: text(&output.stderr) };
    if !output.status.success() {
        let mut words = vec![program];
        words.extend(command.get_args().map(|word| word.display().to_string()));
        bail!("{}{}\nthe command was: {}", said.stdout, said.stderr, words.join(" "));
    }
    Ok(said)
}
