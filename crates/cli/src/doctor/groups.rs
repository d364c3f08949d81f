//! The groups that could be formed here: of all devices of a vendor, or on host memory.

use std::path::Path;

use crossover_core::eligibility::Refusal;
use crossover_core::facts::{Caches, Cap, Caps, GroupProfile, HOST_ARCH, Topology};
use crossover_device::driver::Vendor;
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
) -> (Vec<Group>, Vec<Finding>) {
    let mut all: Vec<_> = shown
        .iter()
        .map(|(vendor, reached)| {
            let missing = missing_for(vendor, settings, platform);
            eligible::examine(vendor.name, on_devices(vendor, reached), settings, &missing)
        })
        .collect();
    if all.is_empty() {
        let group = on_host(ranks.unwrap_or(2));
        all.push(eligible::examine(HOST_ARCH, group, settings, &Missing::new()));
    }
    let (mut groups, mut findings) = (Vec::new(), Vec::new());
    for (group, found) in all.into_iter().flatten() {
        groups.push(group);
        findings.extend(found);
    }
    (groups, findings)
}

/// A rank a device; two on a single one, since a group of one only copies.
fn on_devices(vendor: &Shown, reached: &Reached) -> GroupProfile {
    let devices = &vendor.devices;
    let common = |of: fn(&crossover_device::driver::Description) -> &str| {
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
fn missing_for(vendor: &Shown, settings: Option<&Settings>, platform: &Platform) -> Missing {
    let of_kernels = || {
        let places = Places::new(kernels::named(settings).as_deref());
        let arch = |device: &crossover_device::driver::Description| device.arch.clone();
        let mut archs: Vec<String> = vendor.devices.iter().map(arch).collect();
        archs.dedup();
        archs.iter().find_map(|arch| lacks(&places, vendor.driver.vendor(), arch))
    };
    let refused = platform.refusal().map(|why| missing("a platform that shares memory", why));
    let ipc = refused.or_else(of_kernels).map(|why| ("ipc", why));
    let named = settings.and_then(|settings| settings.backends.get("nccl.library"));
    let library = match vendor.driver.vendor() {
        Vendor::Hip => crossover_nccl_sys::Vendor::Rccl,
        _ => crossover_nccl_sys::Vendor::Nccl,
    };
    let nccl = Library::load(named.map(Path::new), library).err();
    let nccl = nccl.map(|why| ("nccl", missing("its library", why.to_string())));
    ipc.into_iter().chain(nccl).collect()
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
