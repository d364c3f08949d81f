//! The job's directory, for its rendezvous.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use super::LauncherError;
use crate::launch::stop_mark;

/// The path of a Unix socket has at most 107 bytes; the job's part of it takes half.
const LONGEST_BASE: usize = 50;

/// Readable by this user alone; removed on drop.
pub(super) struct JobDirectory {
    path: PathBuf,
    job: String,
}

impl JobDirectory {
    pub(super) fn create() -> Result<Self, LauncherError> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let fits = |dir: &PathBuf| {
            dir.is_absolute() && dir.as_os_str().len() <= LONGEST_BASE && dir.is_dir()
        };
        let base = runtime.filter(fits).unwrap_or_else(|| "/tmp".into());
        let job = format!("{}-{:016x}", std::process::id(), crate::random());
        let path = base.join(format!("crossover-{job}"));
        DirBuilder::new().mode(0o700).create(&path).map_err(|source| LauncherError::Prepare {
            what: format!("make the job's directory {}", path.display()),
            source,
        })?;
        Ok(JobDirectory { path, job })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join("rendezvous")
    }

    /// Says to ranks that they end because somebody wants the job to, and not for a peer's failure. Those
    /// that cannot be told take it for one.
    pub(super) fn tell_of_stop(&self) {
        let _ = std::fs::File::create(stop_mark(&self.socket()));
    }

    pub(super) fn job(&self) -> &str {
        &self.job
    }
}

impl Drop for JobDirectory {
    fn drop(&mut self) {
        // A killed rank 0 leaves its socket; ranks put nothing else here.
        let _ = std::fs::remove_file(self.socket());
        let _ = std::fs::remove_file(stop_mark(&self.socket()));
        let _ = std::fs::remove_dir(&self.path);
    }
}
