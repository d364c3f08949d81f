//! What the library says of each directed pair.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus, TopologyLevel};

use super::super::facts::{Ancestor, Gpu, P2p, Pair};

/// `devices` and `gpus` are the same, in the same order.
pub(super) fn read(devices: &[Device<'_>], gpus: &[Gpu]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (from, gpu) in devices.iter().zip(gpus) {
        for (to, peer) in devices.iter().zip(gpus).filter(|(_, peer)| peer.uuid != gpu.uuid) {
            pairs.push(Pair {
                from: gpu.uuid.clone(),
                to: peer.uuid.clone(),
                read: ask(from, to, P2pCapabilitiesIndex::Read),
                write: ask(from, to, P2pCapabilitiesIndex::Write),
                nvlink: ask(from, to, P2pCapabilitiesIndex::NvLink),
                ancestor: ancestor(from, to),
            });
        }
    }
    pairs
}

fn ask(from: &Device<'_>, to: &Device<'_>, what: P2pCapabilitiesIndex) -> P2p {
    let reason = match from.p2p_status(to, what) {
        Ok(P2pStatus::Ok) => return P2p::Ok,
        Ok(P2pStatus::Unknown) | Err(_) => return P2p::Unknown,
        Ok(P2pStatus::ChipsetNotSupported) => "the chipset does not support it",
        Ok(P2pStatus::GpuNotSupported) => "the GPU does not support it",
        Ok(P2pStatus::IohTopologyNotSupported) => "the GPUs are below different I/O hubs",
        Ok(P2pStatus::DisabledByRegkey) => "a setting of the driver disables it",
        Ok(P2pStatus::NotSupported) => "it is not supported",
    };
    P2p::No(reason.to_owned())
}

fn ancestor(from: &Device<'_>, to: &Device<'_>) -> Option<Ancestor> {
    // The wrapper takes the peer's handle by value and gives no copy of it.
    let to = to.nvml().device_by_uuid(to.uuid().ok()?).ok()?;
    Some(match from.topology_common_ancestor(to).ok()? {
        TopologyLevel::Internal => Ancestor::Board,
        TopologyLevel::Single => Ancestor::Switch,
        TopologyLevel::Multiple => Ancestor::Switches,
        TopologyLevel::HostBridge => Ancestor::HostBridge,
        TopologyLevel::Node => Ancestor::Node,
        TopologyLevel::System => Ancestor::System,
    })
}
