//! Ranks whose data is on devices: which device a rank takes, and what it reports.

mod copier;
mod peers;

use crossover_bootstrap::{Identity, Launch};
use crossover_core::facts::{Caches, HOST_ARCH, RankReport};
use crossover_core::settings::HOST_DEVICE;
use crossover_device::device::Device;
use crossover_device::driver::{Driver, Vendor};
use crossover_device::error::DeviceError;
use crossover_policy::{DeviceChoice, Settings};

use crate::host;
pub(crate) use copier::DeviceCopier;
pub(crate) use peers::Peers;

/// Drivers in the order in which `auto` asks for them.
const AUTO: [&str; 2] = ["cuda", "hip"];

/// Where this rank's data is.
#[derive(Clone)]
pub(crate) enum Place {
    Host,
    Device(Device),
}

impl Place {
    /// The place that the settings choose. Nothing is opened where that is host memory.
    pub(crate) fn open(settings: &Settings, launch: &Launch) -> Result<Place, DeviceError> {
        let own = |driver: &str, all: &dyn Driver| {
            let visible = all.devices()?.len() as u32;
            own_ordinal(driver, launch, visible, settings.allow_shared_device)
        };
        let (driver, ordinal) = match &settings.device {
            DeviceChoice::Host => return Ok(Place::Host),
            DeviceChoice::Auto => {
                let found = AUTO.into_iter().find_map(|name| {
                    let driver = crossover_device::driver(name).ok()?;
                    let devices = driver.devices().ok()?;
                    (!devices.is_empty()).then_some((name, driver))
                });
                let Some((name, driver)) = found else { return Ok(Place::Host) };
                (name, own(name, &*driver)?)
            }
            DeviceChoice::On { driver, ordinal: Some(ordinal) } => (driver.as_str(), *ordinal),
            DeviceChoice::On { driver, ordinal: None } => {
                (driver.as_str(), own(driver, &*crossover_device::driver(driver)?)?)
            }
        };
        crossover_device::open(&format!("{driver}:{ordinal}")).map(Place::Device)
    }

    /// As backends are told, such as `cuda:0`.
    pub(crate) fn name(&self) -> String {
        match self {
            Place::Host => HOST_DEVICE.to_owned(),
            Place::Device(device) => device.to_string(),
        }
    }

    /// The architecture as policies write it.
    pub(crate) fn arch(&self) -> &str {
        match self {
            Place::Host => HOST_ARCH,
            Place::Device(device) => &device.description().arch,
        }
    }

    /// The UUID of the device; empty on host memory.
    pub(crate) fn unit(&self) -> &str {
        match self {
            Place::Host => "",
            Place::Device(device) => &device.description().uuid,
        }
    }

    /// Where backends remember what they find out of devices that use one another's memory, where
    /// nobody says. Devices of tests are nothing to be remembered.
    pub(crate) fn p2p_cache(&self, settings: &Settings) -> Option<String> {
        let Place::Device(device) = self else { return None };
        let is_real = device.driver().vendor() != Vendor::Emulated;
        settings.cache.as_ref().filter(|_| is_real)?.to_str().map(str::to_owned)
    }

    /// What this rank reports of itself; `peers` are all ranks' devices.
    pub(crate) fn report(&self, node_id: Option<&str>, peers: &Peers) -> RankReport {
        let Place::Device(device) = self else { return host::report(node_id) };
        let identity = Identity::here(node_id);
        let description = device.description();
        let (topology, caps) = peers.reach(device, identity.node());
        RankReport {
            label: identity.label(),
            node: identity.node().to_owned(),
            arch: description.arch.clone(),
            device: description.name.clone(),
            unit: description.uuid.clone(),
            topology,
            caps,
            // Of a device, the second level is the last.
            caches: Caches { l2: description.l2, llc: description.l2 },
        }
    }
}

/// The device of the rank's number on its node. Where ranks may share devices, they take turns.
fn own_ordinal(
    driver: &str,
    launch: &Launch,
    visible: u32,
    may_share: bool,
) -> Result<u32, DeviceError> {
    let local = launch.local_rank();
    match visible {
        0 => Err(DeviceError::Absent(format!("{driver} sees no device"))),
        _ if local < visible => Ok(local),
        _ if may_share => Ok(local % visible),
        _ => Err(DeviceError::Invalid(format!(
            "rank {} is number {local} on its node, where {driver} sees {visible} device{}: start \
             no more ranks than devices, or set allow_shared_device \
             (CROSSOVER_ALLOW_SHARED_DEVICE=1) on every rank",
            launch.rank(),
            if visible == 1 { "" } else { "s" },
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_takes_the_device_of_its_number() {
        let ordinal = |local, visible, may_share| {
            let launch = Launch::new(local + 8, 16).local(local, 8);
            own_ordinal("cuda", &launch, visible, may_share).map_err(|e| e.to_string())
        };
        assert_eq!(ordinal(3, 8, false), Ok(3));
        assert_eq!(ordinal(3, 2, true), Ok(1));
        assert_eq!(ordinal(0, 0, true), Err("cuda sees no device".to_owned()));
        let told = ordinal(3, 1, false).expect_err("it has none of its own");
        let start = "rank 11 is number 3 on its node, where cuda sees 1 device: start no more";
        assert!(told.starts_with(start), "{told}");
    }
}
