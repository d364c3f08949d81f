//! Builds the stand-in with g++, into `target/kernels/nccl-stand-in`, once for each set of macros.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crossover_kernel_emulation::compile::CompileError;
use sha2::{Digest, Sha256};

/// It is loaded into processes whose threads may be in it when they end: it stays.
const FLAGS: [&str; 12] = [
    "-std=c++17",
    "-O1",
    "-g1",
    "-fPIC",
    "-shared",
    "-pthread",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wl,-z,nodelete",
];

/// The library's path. The macros, such as `VERSION=21705` or `WITHOUT_WINDOWS`, are those of
/// `tests/nccl-stand-in/README.md`.
///
/// # Errors
///
/// There is no g++, or it refuses.
pub fn stand_in(defines: &[&str]) -> Result<PathBuf, CompileError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
    let folder = root.join("tests/nccl-stand-in");
    let out = root.join("target/kernels/nccl-stand-in");
    let file_error = |error| CompileError::File { path: out.clone(), error };
    fs::create_dir_all(&out).map_err(file_error)?;
    // Tests want the same library at once: one builds it.
    let building = fs::File::create(out.join("lock")).map_err(file_error)?;
    building.lock().map_err(file_error)?;

    let defines: Vec<String> = defines.iter().map(|name| format!("-D{name}")).collect();
    let library = out.join(format!("{}.so", digest(&folder, &defines)?));
    if library.exists() {
        return Ok(library);
    }
    let part = library.with_extension("part");
    let mut command = Command::new("g++");
    command.args(FLAGS).args(&defines).arg(folder.join("unit.cc")).arg("-o").arg(&part);
    let output = command.output().map_err(|error| CompileError::NoCompiler(error.to_string()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(CompileError::Refused(format!("{command:?}\n{text}")));
    }
    fs::rename(&part, &library).map_err(file_error)?;
    Ok(library)
}

/// Of all that goes into the library.
fn digest(folder: &Path, defines: &[String]) -> Result<String, CompileError> {
    let compiler = Command::new("g++").arg("--version").output();
    let compiler = compiler.map_err(|error| CompileError::NoCompiler(error.to_string()))?;
    let mut hash = Sha256::new();
    hash.update(compiler.stdout);
    hash.update(format!("{FLAGS:?}{defines:?}"));
    for file in files(folder)? {
        let text = fs::read(&file);
        let text = text.map_err(|error| CompileError::File { path: file.clone(), error })?;
        hash.update(format!("{} {}\n", file.display(), text.len()));
        hash.update(text);
    }
    Ok(hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Its sources, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>, CompileError> {
    let entries = fs::read_dir(folder)
        .map_err(|error| CompileError::File { path: folder.to_owned(), error })?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end != "md"));
    found.sort();
    Ok(found)
}
