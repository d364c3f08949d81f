//! Several ranks on one device, which the library takes only if it is told to.

use crossover_core::agreement::StepError;
use crossover_nccl_sys::layout::Config;
use crossover_nccl_sys::{Library, Vendor, Version};

/// The first version that takes several ranks on one device.
const SINCE: Version = Version::new(2, 30, 0);
/// What it is told so with. Both are read by the library, at its first communicator.
const MULTI_RANK: &str = "NCCL_MULTI_RANK_GPU_ENABLE";
const NVLS: &str = "NCCL_NVLS_ENABLE";
/// Blocks of all ranks' kernels that one device holds beside one another: measured, calls from 1 MiB
/// on hang with more (16 at four ranks, 8 at eight).
const BLOCKS: u32 = 64;

/// Would the library join these ranks? Refused before it is asked, since it refuses late, on some
/// ranks and in its log.
///
/// `variable` reads this process's environment, where the library will look for the same. They are
/// the user's: nothing here sets them, and to set one while other threads run is not sound.
///
/// # Errors
///
/// The version does not take it, or a variable is not set.
pub(crate) fn allow(
    units: &[String],
    vendor: Vendor,
    version: Version,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(), StepError> {
    if units.is_empty() {
        return Ok(());
    }
    let who = units.join("; ");
    if vendor == Vendor::Rccl {
        return Err(StepError(format!("{who}, and RCCL takes one rank a device")));
    }
    if version < SINCE {
        return Err(StepError(format!(
            "{who}, and NCCL {version} takes one rank a device: 2.30 is the first that takes more"
        )));
    }
    let lacks = |name: &str, value: &str| variable(name).as_deref() != Some(value);
    let unset: Vec<String> = [(MULTI_RANK, "1"), (NVLS, "0")]
        .into_iter()
        .filter(|(name, value)| lacks(name, value))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if unset.is_empty() {
        return Ok(());
    }
    Err(StepError(format!(
        "{who}, which NCCL takes only with {} in the environment of every rank",
        unset.join(" and ")
    )))
}

/// A communicator's configuration: its calls block, and where ranks share a device their kernels
/// leave one another room.
pub(crate) fn config(ranks_per_unit: u32) -> Config {
    let config = Config::new().blocking(true);
    match ranks_per_unit {
        0 | 1 => config,
        ranks => config.ctas(1, (BLOCKS / ranks).max(1) as i32),
    }
}

/// `NCCL 2.27.5`.
pub(crate) fn named(library: &Library) -> String {
    format!("{} {}", library.vendor, library.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(version: Version, set: &[(&str, &str)]) -> Option<String> {
        let units = ["ranks 0 and 2 are both on GPU-5d3c".to_owned()];
        let variable = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        allow(&units, Vendor::Nccl, version, variable).err().map(|e| e.0)
    }

    #[test]
    fn ranks_on_one_device_are_refused_with_what_would_help() {
        let told = refusal(Version::new(2, 28, 9), &[(MULTI_RANK, "1"), (NVLS, "0")]);
        let words = "ranks 0 and 2 are both on GPU-5d3c, and NCCL 2.28.9 takes one rank a device: \
                     2.30 is the first that takes more";
        assert_eq!(told.as_deref(), Some(words));
        let told = refusal(Version::new(2, 30, 7), &[(NVLS, "2")]);
        let words = "ranks 0 and 2 are both on GPU-5d3c, which NCCL takes only with \
                     NCCL_MULTI_RANK_GPU_ENABLE=1 and NCCL_NVLS_ENABLE=0 in the environment of \
                     every rank";
        assert_eq!(told.as_deref(), Some(words));
        let told = refusal(Version::new(2, 30, 7), &[(MULTI_RANK, "1")]);
        assert!(told.is_some_and(|t| t.contains("only with NCCL_NVLS_ENABLE=0 in")));
        assert_eq!(refusal(Version::new(2, 32, 3), &[(MULTI_RANK, "1"), (NVLS, "0")]), None);
        assert!(allow(&[], Vendor::Nccl, Version::new(2, 14, 3), |_| None).is_ok());
    }

    #[test]
    fn kernels_of_ranks_that_share_a_device_leave_one_another_room() {
        assert_eq!(config(1).since(), Version::new(2, 14, 0));
        for (ranks, blocks) in [(2, 32), (4, 16), (8, 8), (100, 1)] {
            assert_eq!(config(ranks).max_ctas, blocks);
        }
    }
}
