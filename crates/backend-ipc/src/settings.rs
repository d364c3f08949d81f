//! What an operator can set for this backend: `ipc.push`, `ipc.lamport` and `ipc.stage`, the bytes
//! of memory that protocols have, `ipc.kernels`, the folder of kernel images, and `ipc.p2p_cache`,
//! the folder in which is remembered what was found out of devices that use one another's memory.
//! Larger messages travel in pieces of those sizes.

use std::path::PathBuf;

use crossover_core::agreement::StepError;
use crossover_core::bytes::setting_bytes;
use crossover_core::settings::BackendSettings;
use crossover_kernel_abi::Room;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// A place has at least the lines that one call clears.
const LEAST: u64 = 4 * KIB;
const MOST: u64 = 1024 * MIB;
/// Flags double it, three slots and as many ranks multiply it: 96 MiB of a device of 16 ranks.
const PUSH: u64 = MIB;
/// Three slots for each rank: 48 MiB of a device of 16 ranks.
const LAMPORT: u64 = MIB;
/// Two, and two for results: 64 MiB of a device.
const STAGE: u64 = 16 * MIB;

/// The rooms, all powers of two.
pub(crate) fn room(settings: &BackendSettings) -> Result<Room, StepError> {
    Ok(Room {
        push: size(settings, "ipc.push", PUSH)?,
        lamport: size(settings, "ipc.lamport", LAMPORT)?,
        stage: size(settings, "ipc.stage", STAGE)?,
    })
}

/// `ipc.kernels`: the folder that holds a folder of images for each architecture.
pub(crate) fn kernels(settings: &BackendSettings) -> Option<PathBuf> {
    settings.get("ipc.kernels").map(PathBuf::from)
}

/// `ipc.p2p_cache`: a folder, or `none`.
pub(crate) fn p2p_cache(settings: &BackendSettings) -> Result<Option<PathBuf>, StepError> {
    match settings.get("ipc.p2p_cache") {
        None | Some("none") => Ok(None),
        Some(folder) if folder.starts_with('/') => Ok(Some(PathBuf::from(folder))),
        Some(other) => Err(StepError(format!(
            "setting ipc.p2p_cache is `{other}`: it must be the path of a folder from the root, or \
             `none`"
        ))),
    }
}

fn size(settings: &BackendSettings, key: &str, default: u64) -> Result<u64, StepError> {
    let Some(text) = settings.get(key) else { return Ok(default) };
    match setting_bytes(text) {
        Some(n) if (LEAST..=MOST).contains(&n) && n.is_power_of_two() => Ok(n),
        _ => Err(StepError(format!(
            "setting {key} is `{text}`: it must be a power of two from {}KiB to {}MiB, such as `1MiB`",
            LEAST / KIB,
            MOST / MIB
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_folder_or_none() {
        let read = |text: &str| {
            let values = [("ipc.p2p_cache".to_owned(), text.to_owned())].into();
            p2p_cache(&BackendSettings { values, ..BackendSettings::default() })
        };
        assert_eq!(p2p_cache(&BackendSettings::default()), Ok(None));
        assert_eq!(read("none"), Ok(None));
        assert_eq!(read("/var/cache/crossover"), Ok(Some("/var/cache/crossover".into())));
        let why = read("cache").expect_err("it depends on where a rank was started").0;
        assert!(why.starts_with("setting ipc.p2p_cache is `cache`: it must be"), "{why}");
    }

    #[test]
    fn sizes_are_powers_of_two_with_a_unit() {
        let read = |text: &str| {
            let values = [("ipc.push".to_owned(), text.to_owned())].into();
            room(&BackendSettings { values, ..BackendSettings::default() }).map(|room| room.push)
        };
        assert_eq!(read("64KiB"), Ok(64 * KIB));
        assert_eq!(read("4096B"), Ok(4096));
        for wrong in
            ["", "1", "1MB", "3MiB", "2KiB", "2048MiB", "-4KiB", "+4KiB", "99999999999999999MiB"]
        {
            let why = read(wrong).expect_err(wrong).0;
            assert!(why.starts_with(&format!("setting ipc.push is `{wrong}`")), "{why}");
        }
    }
}
