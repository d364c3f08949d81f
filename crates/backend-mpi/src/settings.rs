//! What an operator can set for this backend: `mpi.chunk` and `mpi.library`.

use std::path::PathBuf;

use crossover_core::agreement::StepError;
use crossover_core::bytes::setting_bytes;
use crossover_core::settings::BackendSettings;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// Every rank's part of a chunk has at least a cache line.
const LEAST_CHUNK: u64 = 64 * KIB;
/// Counts of MPI's functions have 31 bits.
const MOST_CHUNK: u64 = 512 * MIB;
/// Long enough for a network's latency to be lost in it, short enough for a last-level cache.
const DEFAULT_CHUNK: u64 = 4 * MIB;

/// `mpi.chunk`: bytes that a rank receives in one exchange, at most; a multiple of 64.
pub(crate) fn chunk(settings: &BackendSettings) -> Result<u64, StepError> {
    let Some(text) = settings.get("mpi.chunk") else {
        return Ok(DEFAULT_CHUNK);
    };
    match setting_bytes(text) {
        Some(n) if (LEAST_CHUNK..=MOST_CHUNK).contains(&n) && n % 64 == 0 => Ok(n),
        _ => Err(StepError::new(format!(
            "setting mpi.chunk is `{text}`: it must be bytes with a unit, a multiple of 64 B from {}KiB \
             to {}MiB, such as `4MiB`",
            LEAST_CHUNK / KIB,
            MOST_CHUNK / MIB
        ))),
    }
}

/// `mpi.library`: the library's file, where it is not the one that the loader finds.
pub(crate) fn library(settings: &BackendSettings) -> Option<PathBuf> {
    settings.get("mpi.library").map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_a_size() {
        let asked = |text: &str| {
            let mut settings = BackendSettings::default();
            settings.values.insert("mpi.chunk".to_owned(), text.to_owned());
            chunk(&settings).map_err(|e| e.0)
        };
        assert_eq!(chunk(&BackendSettings::default()).ok(), Some(4 * MIB));
        assert_eq!((asked("64KiB"), asked("512MiB")), (Ok(64 * KIB), Ok(512 * MIB)));
        for wrong in ["63KiB", "513MiB", "65537B", "4M", "-1KiB", ""] {
            let want = format!(
                "setting mpi.chunk is `{wrong}`: it must be bytes with a unit, a multiple of 64 B from \
                 64KiB to 512MiB, such as `4MiB`"
            );
            assert_eq!(asked(wrong), Err(want));
        }
    }
}
