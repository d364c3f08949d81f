//! What an operator can set for this backend: `host.chunk` and `host.shm_dir`.

use std::path::PathBuf;

use crossover_core::agreement::StepError;
use crossover_core::settings::BackendSettings;

use crate::layout::MAX_WORLD;

/// Every rank's region of a slot has at least one cache line.
const LEAST_CHUNK: u64 = 64 * MAX_WORLD as u64;
const MOST_CHUNK: u64 = 64 * MIB;
/// The slots that a core writes and reads in one step stay in its second-level cache.
const DEFAULT_CHUNK: u64 = 256 * KIB;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Where the segment lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An unnamed file in this directory.
    Dir(PathBuf),
    /// Anonymous memory, which needs no directory.
    Memfd,
}

/// `host.chunk`: bytes of a slot, a multiple of 64.
pub(crate) fn chunk(settings: &BackendSettings) -> Result<u64, StepError> {
    let Some(text) = settings.get("host.chunk") else {
        return Ok(DEFAULT_CHUNK);
    };
    match bytes(text) {
        Some(n) if (LEAST_CHUNK..=MOST_CHUNK).contains(&n) && n % 64 == 0 => Ok(n),
        _ => Err(StepError::new(format!(
            "setting host.chunk is `{text}`: it must be a multiple of 64 B from \
             {LEAST_CHUNK}B to {}MiB, such as `256KiB`",
            MOST_CHUNK / MIB
        ))),
    }
}

/// `host.shm_dir`: a directory, or `memfd`.
pub(crate) fn place(settings: &BackendSettings) -> Place {
    match settings.get("host.shm_dir") {
        Some("memfd") => Place::Memfd,
        Some(dir) => Place::Dir(dir.into()),
        None => Place::Dir("/dev/shm".into()),
    }
}

fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text[digits.len()..].trim_start() {
        "B" => 1,
        "KiB" => KIB,
        "MiB" => MIB,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
