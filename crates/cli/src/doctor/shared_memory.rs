//! Where ranks on one node share memory.

use std::fs;
use std::path::{Path, PathBuf};

use crossover_policy::Settings;
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open, statfs};

use super::finding::{Finding, mebibytes};

/// Where segments are made unless `shm_dir` says otherwise.
const DEFAULT: &str = "/dev/shm";
/// The value of `shm_dir` that asks for anonymous memory.
const ANONYMOUS: &str = "memfd";

const ADVICE: &str = "set CROSSOVER_SHM_DIR to a writable tmpfs, or to memfd; in a container, mount \
                      one (docker --shm-size, or an emptyDir of medium Memory at /dev/shm)";

pub(super) fn examine(settings: Option<&Settings>) -> Vec<Finding> {
    let set = settings.and_then(|settings| settings.backends.get("host.shm_dir"));
    let directory = match set.map(String::as_str) {
        Some(ANONYMOUS) => Finding::ok("shm_dir", "none is needed: CROSSOVER_SHM_DIR is memfd"),
        Some(path) => examine_directory(&PathBuf::from(path), "as CROSSOVER_SHM_DIR says"),
        None => examine_directory(Path::new(DEFAULT), "the default"),
    };
    vec![directory, anonymous()]
}

fn examine_directory(path: &Path, why: &str) -> Finding {
    let fail = |what: String| {
        Finding::fail("shm_dir", format!("{} ({why}): {what}", path.display()), Some(ADVICE))
    };
    match fs::metadata(path) {
        Err(e) => return fail(format!("cannot be used: {e}")),
        Ok(metadata) if !metadata.is_dir() => return fail("is no directory".to_owned()),
        Ok(_) => {}
    }
    if let Err(e) = can_make_files(path) {
        return fail(format!("no file can be made in it: {e}"));
    }
    let stat = match statfs(path) {
        Ok(stat) => stat,
        Err(e) => return fail(format!("its file system cannot be asked: {e}")),
    };
    let block = stat.f_bsize as u64;
    let (size, free) = (stat.f_blocks as u64 * block, stat.f_bavail as u64 * block);
    let kind = file_system(stat.f_type as u64);
    let found = format!(
        "{} ({why}): writable, {kind}, {} free of {}",
        path.display(),
        mebibytes(free),
        mebibytes(size)
    );
    match kind {
        "tmpfs" | "ramfs" => Finding::ok("shm_dir", found),
        _ => Finding::warn("shm_dir", format!("{found}; it is not in memory"), ADVICE),
    }
}

/// An unnamed file: nothing is left behind, whatever happens.
fn can_make_files(path: &Path) -> rustix::io::Result<()> {
    open(path, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR).map(drop)
}

fn anonymous() -> Finding {
    match memfd_create("crossover-doctor", MemfdFlags::CLOEXEC) {
        Ok(_) => Finding::ok("memfd", "anonymous shared memory can be had"),
        Err(e) => Finding::warn(
            "memfd",
            format!("anonymous shared memory cannot be had: {e}"),
            "allow memfd_create in the sandbox's system call filter, or rely on shm_dir",
        ),
    }
}

/// By its magic number (linux/magic.h).
fn file_system(magic: u64) -> &'static str {
    match magic {
        0x0102_1994 => "tmpfs",
        0x8584_58f6 => "ramfs",
        0x9584_58f6 => "hugetlbfs",
        0x794c_7630 => "overlayfs",
        0xef53 => "ext",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x6969 => "nfs",
        _ => "an unknown file system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    #[test]
    fn directories_that_cannot_serve_are_found() {
        let verdict = |path: &str| examine_directory(Path::new(path), "a test").verdict;
        assert_eq!(verdict("/nonexistent"), Verdict::Fail);
        assert_eq!(verdict("/dev/null"), Verdict::Fail);
        assert_eq!(verdict("/proc"), Verdict::Fail);
    }
}
