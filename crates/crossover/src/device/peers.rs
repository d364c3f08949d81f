//! On which devices the other ranks are, and how they reach one another.

use crossover_core::bootstrap::{Bootstrap, BootstrapError};
use crossover_core::facts::{Cap, Caps, Topology};
use crossover_device::device::Device;
use crossover_device::driver::Vendor;
use crossover_device::error::DeviceError;
use crossover_device::topology::mesh::{self, Reach};
use crossover_device::topology::{kfd, nvml};
use crossover_device::verdict;

/// The node and the device of every rank, in rank order.
pub(crate) struct Peers(Vec<(String, String)>);

impl Peers {
    /// Tells all ranks where this one is. Collective.
    pub(crate) fn exchange(
        channel: &dyn Bootstrap,
        node: &str,
        unit: &str,
    ) -> Result<Peers, BootstrapError> {
        let step = "tell devices";
        let all = channel.all_gather(step, format!("{unit}\n{node}").as_bytes())?;
        let read = |(rank, bytes): (u32, Vec<u8>)| {
            let text = String::from_utf8(bytes).ok();
            let (unit, node) =
                text.as_deref().and_then(|text| text.split_once('\n')).ok_or_else(|| {
                    BootstrapError::Garbled {
                        rank,
                        step: step.to_owned(),
                        what: "what names no device and node".to_owned(),
                    }
                })?;
            Ok((node.to_owned(), unit.to_owned()))
        };
        (0..).zip(all).map(read).collect::<Result<Vec<_>, BootstrapError>>().map(Peers)
    }

    /// How the ranks of this node reach one another, as far as drivers say; backends prove it. A
    /// machine that tells nothing of its wires has the least.
    pub(crate) fn reach(&self, device: &Device, node: &str) -> (Topology, Caps) {
        let here = self.0.iter().filter(|(theirs, unit)| theirs == node && !unit.is_empty());
        let units: Vec<String> = here.map(|(_, unit)| unit.clone()).collect();
        let vendor = device.driver().vendor();
        let own = &device.description().uuid;
        if units.iter().all(|unit| unit == own) {
            return (one_device(vendor), Caps::of(&[Cap::P2p]));
        }
        let (topology, refused) = match wires(vendor, own, &units) {
            Ok((reach, refused, why)) => {
                tracing::info!(target: "crossover::form", topology = %why, "devices");
                (topology_of(vendor, reach), refused)
            }
            Err(e) => {
                tracing::warn!(target: "crossover::form", "taken for pcie: {e}");
                (Topology::Pcie, None)
            }
        };
        // What a driver does not answer, backends find out.
        let by_driver = || {
            let pairs = verdict::refused(device.driver(), device.description(), &units);
            let pair = pairs.unwrap_or_default().into_iter().next()?;
            Some(format!("the driver says that {} cannot reach {}", pair.user, pair.owner))
        };
        match refused.or_else(by_driver) {
            None => (topology, Caps::of(&[Cap::P2p])),
            Some(why) => {
                tracing::warn!(target: "crossover::form", "no peer access: {why}");
                (topology, Caps::NONE)
            }
        }
    }
}

/// The wires, why an access of `own` is refused, and what was found, in words.
fn wires(
    vendor: Vendor,
    own: &str,
    units: &[String],
) -> Result<(Reach, Option<String>, String), DeviceError> {
    let (found, refused) = match vendor {
        Vendor::Hip => (mesh::amd(&kfd::read(kfd::NODES.as_ref())?, units)?, None),
        Vendor::Cuda => {
            let facts = nvml::read()?;
            let pairs = units.iter().filter_map(|unit| facts.pair(own, unit));
            let refused = pairs.into_iter().find_map(|pair| pair.refusal());
            (mesh::nvidia(&facts, units)?, refused)
        }
        Vendor::Emulated => {
            let why = "memory of one process".to_owned();
            return Ok((Reach::NvlinkFull, None, why));
        }
    };
    Ok((found.reach, refused, found.to_string()))
}

/// Rules for a vendor's best links are right for one device's memory.
fn one_device(vendor: Vendor) -> Topology {
    match vendor {
        Vendor::Hip => Topology::XgmiFull,
        Vendor::Cuda | Vendor::Emulated => Topology::NvlinkFull,
    }
}

fn topology_of(vendor: Vendor, reach: Reach) -> Topology {
    match reach {
        Reach::OneDevice => one_device(vendor),
        other => other.class().parse().unwrap_or(Topology::Pcie),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reach_is_a_topology() {
        let cuda = [
            (Reach::OneDevice, Topology::NvlinkFull),
            (Reach::NvlinkFull, Topology::NvlinkFull),
            (Reach::NvlinkPartial, Topology::NvlinkPartial),
            (Reach::Pcie, Topology::Pcie),
        ];
        for (reach, topology) in cuda {
            assert_eq!(topology_of(Vendor::Cuda, reach), topology);
        }
        for reach in [Reach::OneDevice, Reach::XgmiFull] {
            assert_eq!(topology_of(Vendor::Hip, reach), Topology::XgmiFull);
        }
        assert_eq!(topology_of(Vendor::Hip, Reach::Pcie), Topology::Pcie);
    }
}
