//! What an operator can set for this backend: `nccl.library`, the file of the library,
//! `nccl.window`, the bytes of memory through which `nccl/symmetric` calls go, and
//! `nccl.ranks_per_device`, how many ranks have to find room on one device.

use std::path::PathBuf;

use crossover_core::agreement::StepError;
use crossover_core::bytes::setting_bytes;
use crossover_core::settings::BackendSettings;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// What windows are aligned to.
const LEAST: u64 = 4 * KIB;
const MOST: u64 = 1024 * MIB;
/// One for inputs and, for results, as many as there are ranks: 36 MiB of a device of 8 ranks.
const WINDOW: u64 = 4 * MIB;

/// `nccl.library`: a path, or a name that the loader knows.
pub(crate) fn library(settings: &BackendSettings) -> Option<PathBuf> {
    settings.get("nccl.library").map(PathBuf::from)
}

/// `nccl.window`: most input bytes per rank of a call of `nccl/symmetric`; 0 for no windows.
pub(crate) fn window(settings: &BackendSettings) -> Result<u64, StepError> {
    let Some(text) = settings.get("nccl.window") else { return Ok(WINDOW) };
    match setting_bytes(text) {
        Some(0) => Ok(0),
        Some(n) if (LEAST..=MOST).contains(&n) && n.is_power_of_two() => Ok(n),
        _ => Err(StepError(format!(
            "setting nccl.window is `{text}`: it must be a power of two from {}KiB to {}MiB, such \
             as `4MiB`, or `0B` for no windows",
            LEAST / KIB,
            MOST / MIB
        ))),
    }
}

/// `nccl.ranks_per_device`: most ranks on one device, those of other groups too whose calls may run
/// beside this one's. A group counts its own by itself, and takes no less.
pub(crate) fn ranks_per_device(settings: &BackendSettings) -> Result<u32, StepError> {
    let Some(text) = settings.get("nccl.ranks_per_device") else { return Ok(1) };
    match text.parse() {
        Ok(ranks) if ranks >= 1 => Ok(ranks),
        _ => Err(StepError(format!(
            "setting nccl.ranks_per_device is `{text}`: it must be a number of ranks, 1 or more"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_powers_of_two_with_a_unit_or_none() {
        let read = |text: &str| {
            let values = [("nccl.window".to_owned(), text.to_owned())].into();
            window(&BackendSettings { values, ..BackendSettings::default() })
        };
        assert_eq!(window(&BackendSettings::default()), Ok(4 * MIB));
        assert_eq!(read("64KiB"), Ok(64 * KIB));
        assert_eq!(read("0B"), Ok(0));
        for wrong in ["", "0", "1MB", "3MiB", "2KiB", "2048MiB", "-4KiB", "99999999999999999MiB"] {
            let why = read(wrong).expect_err(wrong).0;
            assert!(why.starts_with(&format!("setting nccl.window is `{wrong}`")), "{why}");
        }
    }
    #[test]
    fn ranks_on_a_device_are_counted_from_one() {
        let read = |text: &str| {
            let values = [("nccl.ranks_per_device".to_owned(), text.to_owned())].into();
            ranks_per_device(&BackendSettings { values, ..BackendSettings::default() })
        };
        assert_eq!(ranks_per_device(&BackendSettings::default()), Ok(1));
        assert_eq!(read("8"), Ok(8));
        for wrong in ["", "0", "-1", "two", "4294967296"] {
            let why = read(wrong).expect_err(wrong).0;
            assert!(
                why.starts_with(&format!("setting nccl.ranks_per_device is `{wrong}`")),
                "{why}"
            );
        }
    }
}
