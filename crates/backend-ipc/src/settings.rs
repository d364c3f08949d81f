//! What an operator can set for this backend: `ipc.push`, `ipc.lamport` and `ipc.stage`, the bytes
//! of memory that protocols have, and `ipc.kernels`, the folder of kernel images. Larger messages travel in
//! pieces of those sizes.

use std::path::PathBuf;

use crossover_core::agreement::StepError;
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

fn size(settings: &BackendSettings, key: &str, default: u64) -> Result<u64, StepError> {
    let Some(text) = settings.get(key) else { return Ok(default) };
    match bytes(text) {
        Some(n) if (LEAST..=MOST).contains(&n) && n.is_power_of_two() => Ok(n),
        _ => Err(StepError(format!(
            "setting {key} is `{text}`: it must be a power of two from {}KiB to {}MiB, such as `1MiB`",
            LEAST / KIB,
            MOST / MIB
        ))),
    }
}

fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", KIB), ("MiB", MIB), ("B", 1)];
    let (digits, unit) = units.iter().find_map(|(u, n)| Some((text.strip_suffix(u)?, n)))?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse::<u64>().ok()?.checked_mul(*unit)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

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
