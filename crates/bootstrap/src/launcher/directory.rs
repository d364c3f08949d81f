//! The job's directory, for its rendezvous.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::LauncherError;

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

    pub(super) fn job(&self) -> &str {
        &self.job
    }
}

impl Drop for JobDirectory {
    fn drop(&mut self) {
        // A killed rank 0 leaves its socket; ranks put nothing else here.
        let _ = std::fs::remove_file(Path::new(&self.socket()));
        let _ = std::fs::remove_dir(&self.path);
    }
}
