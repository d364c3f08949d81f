//! The groups that could be formed here: of all devices of a vendor, or on host memory.

use std::path::Path;

use crossover_core::eligibility::Refusal;
use crossover_core::facts::{Caches, Cap, Caps, GroupProfile, HOST_ARCH, Topology};
use crossover_device::driver::{Description, Vendor};
use crossover_device::images::Places;
use crossover_device::verdict::platform::Platform;
use crossover_nccl_sys::Library;
use crossover_policy::{Settings, StatedGroup};

use super::devices::Shown;
use super::eligible::{self, Group, Missing, missing};
use super::finding::Finding;
use super::kernels::{self, State};
use super::peers::Reached;

/// `ranks` is how many ranks are here, where a launcher says so.
pub(super) fn examine(
    shown: &[(Shown, Reached)],
    settings: Option<&Settings>,
    platform: &Platform,
    ranks: Option<u32>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> (Vec<Group>, Vec<Finding>) {
    let (mut groups, mut findings) = (Vec::new(), Vec::new());
    for (vendor, reached) in shown {
        let profile = on_devices(&vendor.devices, reached);
        let missing = missing_for(vendor, settings, platform, variable);
        let told = eligible::examine(vendor.name, profile, settings, &missing);
        let Some((group, found)) = told else { continue };
        groups.push(group);
        if vendor.devices.len() == 1 {
            let found =
                "as two ranks on the one device (allow_shared_device): one rank only copies";
            findings.push(Finding::ok("would_form", found));
        }
        findings.extend(found);
    }
    if shown.is_empty() {
        let group = on_host(ranks.unwrap_or(2));
        let told = eligible::examine(HOST_ARCH, group, settings, &Missing::new());
        if let Some((group, found)) = told {
            groups.push(group);
            findings.extend(found);
        }
    }
    (groups, findings)
}

/// A rank a device; two on a single one, since a group of one only copies.
fn on_devices(devices: &[Description], reached: &Reached) -> GroupProfile {
    let common = |of: fn(&Description) -> &str| {
        let first = of(&devices[0]);
        let is_common = devices.iter().all(|device| of(device) == first);
        // As the agreed facts of ranks that differ have it.
        if is_common { first.to_owned() } else { "mixed".to_owned() }
    };
    let cache = devices.iter().map(|device| device.l2).min().unwrap_or_default();
    let stated = StatedGroup {
        arch: Some(common(|device| &device.arch)),
        device: Some(common(|device| &device.name)),
        world: Some(u32::try_from(devices.len()).unwrap_or(u32::MAX).max(2)),
        topology: Some(reached.topology.unwrap_or(Topology::Pcie)),
        caps: Some(if reached.p2p { Caps::of(&[Cap::P2p]) } else { Caps::NONE }),
        ..StatedGroup::default()
    };
    GroupProfile { caches: Caches { l2: cache, llc: cache }, ..stated.profile() }
}

fn on_host(ranks: u32) -> GroupProfile {
    let report = crossover::report(None);
    let stated = StatedGroup {
        device: Some(report.device),
        world: Some(ranks.max(2)),
        ..StatedGroup::default()
    };
    GroupProfile { caches: report.caches, ..stated.profile() }
}

/// What backends look for before all else.
fn missing_for(
    vendor: &Shown,
    settings: Option<&Settings>,
    platform: &Platform,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Missing {
    let of_kernels = || {
        let places = Places::new(kernels::named(settings).as_deref());
        let archs = vendor.devices.iter().map(|device| device.arch.as_str());
        archs.into_iter().find_map(|arch| lacks(&places, vendor.vendor(), arch))
    };
    let refused = platform.refusal().map(|why| missing("a platform that shares memory", why));
    let ipc = refused.or_else(of_kernels).map(|why| ("ipc", why));
    let named = settings.and_then(|settings| settings.backends.get("nccl.library"));
    let library = match vendor.vendor() {
        Vendor::Hip => crossover_nccl_sys::Vendor::Rccl,
        _ => crossover_nccl_sys::Vendor::Nccl,
    };
    let nccl = match Library::load(named.map(Path::new), library) {
        Err(why) => Some(missing("its library", why.to_string())),
        Ok(_) if vendor.devices.len() == 1 => one_device(variable),
        Ok(_) => None,
    };
    ipc.into_iter().chain(nccl.map(|why| ("nccl", why))).collect()
}

/// NCCL takes several ranks on a device only from users who say so.
fn one_device(variable: &dyn Fn(&str) -> Option<String>) -> Option<Refusal> {
    let asked = [("NCCL_MULTI_RANK_GPU_ENABLE", "1"), ("NCCL_NVLS_ENABLE", "0")];
    let is_set = |(name, value): (&str, &str)| variable(name).as_deref() == Some(value);
    let got = "one device for both, which NCCL 2.30 takes with NCCL_MULTI_RANK_GPU_ENABLE=1 and \
               NCCL_NVLS_ENABLE=0";
    (!asked.into_iter().all(is_set)).then(|| missing("a device for each rank", got))
}

fn lacks(places: &Places, vendor: Vendor, arch: &str) -> Option<Refusal> {
    let got = match kernels::state(places, vendor, arch) {
        State::Built(_) => return None,
        State::Stale(_) => "those of another version".to_owned(),
        State::Missing { command, .. } => format!("none (`{command}` builds them)"),
        State::Broken(e) => e.to_string(),
    };
    Some(missing(format!("kernels for {arch}"), got))
}

#[cfg(test)]
mod tests {
    use crossover_policy::Override;

    use super::*;
    use crate::doctor::finding::Verdict;
    use crate::doctor::stub::{platform, shown};

    /// What is told of emulated devices of this architecture, with kernels looked for in an empty
    /// folder, and a library that is none.
    fn told(arch: &str, devices: u32, variables: &[(&str, &str)]) -> (Vec<Group>, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = crossover_backends::registry().expect("backends");
        let set = [("ipc.kernels", folder.path().to_string_lossy().into_owned())];
        let set = set.map(|(key, value)| Override {
            key: key.to_owned(),
            value,
            origin: "a test".to_owned(),
        });
        let settings = Settings::load([], &set, &registry).expect("a setting");
        let vendor = shown(arch, devices);
        let (reached, _) = crate::doctor::peers::examine(&vendor, None, &platform());
        let variable = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        };
        let shown = [(vendor, reached)];
        let (groups, findings) = examine(&shown, Some(&settings), &platform(), None, &variable);
        assert!(findings.iter().all(|finding| finding.verdict != Verdict::Fail));
        let line = |finding: Finding| format!("{} {}", finding.check, finding.found);
        (groups, findings.into_iter().map(line).collect())
    }

    #[test]
    fn a_group_of_all_devices_lacks_kernels_until_they_are_built() {
        let (groups, lines) = told("sm90", 4, &[]);
        assert_eq!(groups.len(), 1);
        // How they are wired nobody tells, so they have the least.
        assert_eq!(lines[0], "would_form 4 ranks on sm90, pcie, caps p2p");
        let of_ipc = "not_eligible ipc: setup: wants kernels for sm90, got none (`cargo xtask kernels \
                      cuda --arch sm90` builds them)";
        assert!(lines.iter().any(|line| line == of_ipc), "{lines:?}");
    }

    #[test]
    fn two_ranks_are_told_of_one_device() {
        let (_, lines) = told("sm90", 1, &[]);
        assert!(lines[0].starts_with("would_form as two ranks on the one device"), "{}", lines[0]);
        assert!(lines[1].starts_with("would_form 2 ranks on sm90"), "{}", lines[1]);
        let set = |name: &str| {
            let value = if name == "NCCL_NVLS_ENABLE" { "0" } else { "1" };
            Some(value.to_owned())
        };
        assert_eq!(one_device(&set), None);
        assert!(one_device(&|_| None).expect("a refusal").to_string().contains("NCCL 2.30"));
    }

    #[test]
    fn without_devices_the_group_is_on_the_host_and_of_the_launchers_size() {
        let (groups, findings) = examine(&[], None, &platform(), Some(6), &|_| None);
        assert_eq!(groups.len(), 1);
        assert_eq!(findings[0].found, "6 ranks on host, host, caps none");
    }
}
