//! A daemon of NVIDIA's Multi-Process Service for ranks that share a GPU.
//!
//! Without one, processes on a GPU take turns by time slices: ranks that wait for one another then
//! take milliseconds for what takes microseconds.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where clients look for a daemon, and where it writes its logs.
const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";
/// Where clients look if nobody says.
const DEFAULT_PIPES: &str = "/tmp/nvidia-mps";
const PROGRAM: &str = "nvidia-cuda-mps-control";
/// For the program's answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// For the daemon's end; the keeper's own patience is a little shorter.
const LAST_PATIENCE: Duration = Duration::from_secs(25);

/// Waits until its input ends, which it does with the process that holds the other end, however
/// that ends; then ends the daemon and removes its folder.
const KEEPER: &str = r#"
trap '' INT TERM HUP
cat >/dev/null
pid=$(cat "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid" 2>/dev/null)
echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1 || kill "$pid" 2>/dev/null
rm -rf "$1"
"#;

/// A daemon of this process alone, which ends with it.
pub(super) struct Daemon {
    folder: PathBuf,
    keeper: Child,
}

impl Daemon {
    /// Starts one, unless ranks would find one that is there already.
    ///
    /// # Errors
    ///
    /// There is none and none can be started: why, and what follows.
    pub(super) fn unless_found() -> Result<Option<Daemon>, String> {
        match answers() {
            Ok(true) => Ok(None),
            Ok(false) => Daemon::start().map(Some).map_err(|e| told(&e.to_string())),
            Err(_) if is_there() => Ok(None),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(told(&format!("there is no program {PROGRAM}")))
            }
            Err(e) => Err(told(&format!("{PROGRAM} cannot be run: {e}"))),
        }
    }

    /// What ranks need in their environment to find it.
    pub(super) fn variables(&self) -> [(&'static str, OsString); 2] {
        variables(&self.folder)
    }

    fn start() -> io::Result<Daemon> {
        let folder = std::env::temp_dir().join(format!("crossover-mps-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(&folder).envs(variables(&folder));
        // In a group of its own: what a terminal sends to this process's group ends no keeper.
        keeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = keeper.spawn().inspect_err(|_| drop(fs::remove_dir(&folder)))?;
        let daemon = Daemon { folder, keeper };

        for (_, path) in daemon.variables() {
            DirBuilder::new().mode(0o700).create(path)?;
        }
        let said = daemon.folder.join("said");
        let mut control = Command::new(PROGRAM);
        control.arg("-d").envs(daemon.variables()).process_group(0).stdin(Stdio::null());
        // Into a file: the daemon would hold a pipe open.
        control.stdout(Stdio::null()).stderr(fs::File::create(&said)?);
        match ends_within(&mut control.spawn()?, PATIENCE)? {
            Some(true) => Ok(daemon),
            Some(false) => Err(io::Error::other(format!(
                "{PROGRAM} -d failed: {}",
                fs::read_to_string(&said).unwrap_or_default().trim()
            ))),
            None => Err(io::Error::other(format!("{PROGRAM} -d has not ended in {PATIENCE:?}"))),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It may take the keeper as long as clients live; it goes on by itself after that.
        let _ = ends_within(&mut self.keeper, LAST_PATIENCE);
    }
}

/// Is there a daemon where clients of this environment look, as far as its files say?
pub(super) fn is_there() -> bool {
    let pipes = std::env::var_os(PIPES).unwrap_or_else(|| DEFAULT_PIPES.into());
    Path::new(&pipes).join("control").exists()
}

/// Does a daemon answer where clients of this environment look?
fn answers() -> io::Result<bool> {
    let mut control = Command::new(PROGRAM);
    control.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut control = control.spawn()?;
    if let Some(mut stdin) = control.stdin.take() {
        // One that does not read has no daemon to ask.
        let _ = io::Write::write_all(&mut stdin, b"get_server_list\n");
    }
    Ok(ends_within(&mut control, PATIENCE)? == Some(true))
}

/// Has it succeeded? `None`, and it is no more, if it has not ended in time.
fn ends_within(child: &mut Child, patience: Duration) -> io::Result<Option<bool>> {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn variables(folder: &Path) -> [(&'static str, OsString); 2] {
    let path = |name: &str| folder.join(OsStr::new(name)).into_os_string();
    [(PIPES, path("pipe")), (LOGS, path("log"))]
}

fn told(why: &str) -> String {
    format!(
        "ranks share a GPU without an MPS daemon, so they take turns by time slices and a call \
         takes milliseconds: {why}"
    )
}

#[cfg(test)]
mod tests;
