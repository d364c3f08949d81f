//! Builds kernels and runtime with g++, into `target/kernels/emulated`. What is built already is not
//! built again: an object is named by the digest of all that went into it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use xxhash_rust::xxh3::xxh3_128;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// Nothing can be built here: a test says so and skips.
    #[error("kernels are not emulated here: there is no g++ ({0})")]
    NoCompiler(String),
    /// The compiler refuses. Its own text, after the command.
    #[error("{0}")]
    Refused(String),
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// What is made of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// A shared object, which a process loads.
    Image,
    /// A program of its own under ThreadSanitizer, which plays the scenarios in the files that it is
    /// given.
    SanitizedProgram,
}

/// Builds `kernels` (sources) and the runtime, with macros defined; returns the file.
pub fn build(make: Make, kernels: &[PathBuf], defines: &[&str]) -> Result<PathBuf, CompileError> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = root().join("target/kernels/emulated");
    let file_error = |error| CompileError::File { path: out.clone(), error };
    fs::create_dir_all(&out).map_err(file_error)?;
    // Tests want the same image at once: one builds it.
    let building = fs::File::create(out.join("lock")).map_err(file_error)?;
    building.lock().map_err(file_error)?;

    let mut headers = xxh3_128(&version()?).to_le_bytes().to_vec();
    for folder in [here, &root().join("kernels-common/crossover")] {
        for file in files(folder, "h")? {
            headers.extend(read(&file)?);
        }
    }
    let mut runtime = files(here, "cpp")?;
    if make == Make::SanitizedProgram {
        runtime.push(here.join("standalone/main.cpp"));
    }
    let jobs: Vec<(&PathBuf, Vec<OsString>)> = (runtime.iter())
        .map(|source| (source, runtime_flags(make)))
        .chain(kernels.iter().map(|source| (source, kernel_flags(make, defines))))
        .collect();
    let objects = objects(&out, &headers, &jobs)?;

    let names: String = objects.iter().map(|object| object.display().to_string()).collect();
    let (end, kind) = match make {
        Make::Image => ("so", "-shared"),
        Make::SanitizedProgram => ("tsan", "-fsanitize=thread"),
    };
    let linked = out.join(format!("{:032x}.{end}", xxh3_128(names.as_bytes())));
    if !linked.exists() {
        let mut flags: Vec<OsString> = vec![kind.into(), "-pthread".into()];
        flags.extend(objects.into_iter().map(OsString::from));
        compile(&flags, &linked)?;
    }
    Ok(linked)
}

/// Every kernel that platforms share, in order.
pub fn common_kernels() -> Result<Vec<PathBuf>, CompileError> {
    let mut found = Vec::new();
    let folder = root().join("kernels-common/kernels");
    let entries = fs::read_dir(&folder)
        .map_err(|error| CompileError::File { path: folder.clone(), error })?;
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        found.extend(files(&entry.path(), "cc")?);
    }
    found.sort();
    Ok(found)
}

/// The checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("/")).to_owned()
}

fn runtime_flags(make: Make) -> Vec<OsString> {
    let mut flags = warnings();
    flags.extend(["-O2", "-g1", "-fvisibility=hidden"].map(OsString::from));
    // The runtime itself is not instrumented: what it shares with kernels it tells the sanitizer.
    if make == Make::SanitizedProgram {
        flags.push("-DEMULATOR_TSAN".into());
    }
    flags
}

fn kernel_flags(make: Make, defines: &[&str]) -> Vec<OsString> {
    let mut flags = warnings();
    let root = root();
    for folder in [root.join("tests/kernel-emulation"), root.join("kernels-common")] {
        flags.push("-I".into());
        flags.push(folder.into());
    }
    flags.extend(defines.iter().map(|name| format!("-D{name}").into()));
    if !defines.is_empty() {
        // What a macro takes away leaves parameters that nobody uses.
        flags.push("-Wno-unused-parameter".into());
    }
    flags.extend(["-ffp-contract=off", "-fvisibility=hidden"].map(OsString::from));
    match make {
        Make::Image => flags.extend(["-O2", "-g1"].map(OsString::from)),
        Make::SanitizedProgram => {
            flags.extend(["-O1", "-g1", "-fsanitize=thread"].map(OsString::from));
        }
    }
    flags
}

fn warnings() -> Vec<OsString> {
    let flags = ["-std=c++17", "-fPIC", "-Wall", "-Wextra", "-Werror"].map(OsString::from);
    // Kernels unroll loops in other compilers' words; that there is a rank 0, with whose value a sum
    // begins, the compiler cannot know.
    let less = ["-Wno-unknown-pragmas", "-Wno-maybe-uninitialized"].map(OsString::from);
    [flags.as_slice(), &less].concat()
}

/// Compiles those of the sources whose objects are not there, as many at a time as there are processors.
fn objects(
    out: &Path,
    headers: &[u8],
    jobs: &[(&PathBuf, Vec<OsString>)],
) -> Result<Vec<PathBuf>, CompileError> {
    let mut objects = Vec::new();
    for (source, flags) in jobs {
        let mut input = headers.to_vec();
        input.extend(read(source)?);
        input.extend(format!("{source:?}{flags:?}").into_bytes());
        objects.push(out.join(format!("{:032x}.o", xxh3_128(&input))));
    }
    let missing: Vec<usize> = (0..jobs.len()).filter(|at| !objects[*at].exists()).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), CompileError> {
        while let Some(at) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (source, flags) = &jobs[*at];
            let mut flags = flags.clone();
            flags.extend(["-c".into(), OsString::from(source)]);
            compile(&flags, &objects[*at])?;
        }
        Ok(())
    };
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|one| match one.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(objects)
}

/// Writes beside `to` first: what was interrupted is not taken for built.
fn compile(flags: &[OsString], to: &Path) -> Result<(), CompileError> {
    let part = to.with_extension("part");
    let mut command = Command::new("g++");
    command.args(flags).arg("-o").arg(&part);
    let output = command.output().map_err(|error| CompileError::NoCompiler(error.to_string()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(CompileError::Refused(format!("{command:?}\n{text}")));
    }
    fs::rename(&part, to).map_err(|error| CompileError::File { path: to.to_owned(), error })
}

fn version() -> Result<Vec<u8>, CompileError> {
    match Command::new("g++").arg("--version").output() {
        Ok(output) => Ok(output.stdout),
        Err(error) => Err(CompileError::NoCompiler(error.to_string())),
    }
}

fn files(folder: &Path, end: &str) -> Result<Vec<PathBuf>, CompileError> {
    let entries = fs::read_dir(folder)
        .map_err(|error| CompileError::File { path: folder.to_owned(), error })?;
    let mut found: Vec<PathBuf> = (entries.flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|has| has == end))
        .collect();
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, CompileError> {
    fs::read(path).map_err(|error| CompileError::File { path: path.to_owned(), error })
}
