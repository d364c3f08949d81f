//! On which devices the other ranks are, and how they reach one another.

use crossover_core::bootstrap::{Bootstrap, BootstrapError};
use crossover_core::facts::{Cap, Caps, Topology};
use crossover_device::device::Device;
use crossover_device::driver::Vendor;

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
        match refused_by_driver(device, &units) {
            None => (Topology::Pcie, Caps::of(&[Cap::P2p])),
            Some(why) => {
                tracing::warn!(target: "crossover::form", "no peer access: {why}");
                (Topology::Pcie, Caps::NONE)
            }
        }
    }
}

/// Rules for a vendor's best links are right for one device's memory.
fn one_device(vendor: Vendor) -> Topology {
    match vendor {
        Vendor::Hip => Topology::XgmiFull,
        Vendor::Cuda | Vendor::Emulated => Topology::NvlinkFull,
    }
}

/// Asks the driver about the peers' devices that this process sees as well.
fn refused_by_driver(device: &Device, units: &[String]) -> Option<String> {
    let own = device.description();
    let visible = device.driver().devices().unwrap_or_default();
    let peers = visible.iter().filter(|peer| peer.uuid != own.uuid && units.contains(&peer.uuid));
    for peer in peers {
        if let Ok(false) = device.driver().can_access(own.ordinal, peer.ordinal) {
            return Some(format!("the driver says that {} cannot reach {}", own.uuid, peer.uuid));
        }
    }
    None
}
