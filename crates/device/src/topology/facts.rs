//! What NVIDIA's management library says of a machine, as plain data.

use serde::{Deserialize, Serialize};

use super::fabric::Fabric;
use super::pci::PciAddress;

/// All that is judged afterwards; the same for every process of a machine or container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvidiaFacts {
    /// The driver's version, such as `580.65.06`.
    pub driver: String,
    /// The GPUs, ascending by PCI address, which is NVML's order.
    pub gpus: Vec<Gpu>,
    /// What is said of each directed pair of different GPUs.
    pub pairs: Vec<Pair>,
}

impl NvidiaFacts {
    /// The GPU that is, or holds the MIG instance that is, `uuid`.
    pub fn gpu_of(&self, uuid: &str) -> Option<&Gpu> {
        self.gpus
            .iter()
            .find(|gpu| gpu.uuid == uuid || gpu.instances.iter().any(|part| part.uuid == uuid))
    }

    /// What is said of `from` using `to`, both UUIDs of GPUs.
    pub fn pair(&self, from: &str, to: &str) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.from == from && pair.to == to)
    }
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// `GPU-…`.
    pub uuid: String,
    /// Such as `NVIDIA H200`.
    pub name: String,
    /// Where it is.
    pub pci: PciAddress,
    /// Is it divided into instances (MIG)? Then it can itself not be used.
    #[serde(default)]
    pub mig: bool,
    /// The instances, in NVML's order.
    #[serde(default)]
    pub instances: Vec<Instance>,
    /// The NVLinks whose state could be asked. NVML answers other questions for links that a GPU
    /// does not have; only the state tells which there are.
    #[serde(default)]
    pub links: Vec<Link>,
    /// Its place in a fabric; `None` where the driver cannot tell.
    #[serde(default)]
    pub fabric: Option<Fabric>,
}

impl Gpu {
    /// Links that are up.
    pub fn links_up(&self) -> usize {
        self.links.iter().filter(|link| link.up).count()
    }
}

/// A part of a divided GPU that a process can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// `MIG-…`.
    pub uuid: String,
    /// Number of its GPU instance.
    pub gpu_instance: u32,
    /// Number of its compute instance.
    pub compute_instance: u32,
}

/// An NVLink that a GPU has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its number.
    pub number: u32,
    /// Is it up?
    pub up: bool,
    /// What is at its other end.
    #[serde(default)]
    pub remote: Remote,
}

/// The other end of an NVLink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Remote {
    /// A GPU.
    Gpu(PciAddress),
    /// A switch, through which other GPUs are reached.
    Switch,
    /// Something else, or nothing said.
    #[default]
    Unknown,
}

/// What NVML says of one GPU using another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The GPU that reads or writes.
    pub from: String,
    /// The GPU whose memory that is.
    pub to: String,
    /// May it read?
    pub read: P2p,
    /// May it write?
    pub write: P2p,
    /// Does that go over NVLink?
    pub nvlink: P2p,
    /// What both are below, such as `HostBridge`; `None` where that is not said.
    #[serde(default)]
    pub ancestor: Option<Ancestor>,
}

impl Pair {
    /// The reason for which the driver refuses, if it does.
    pub fn refusal(&self) -> Option<String> {
        for (what, answer) in [("write", &self.write), ("read", &self.read)] {
            if let P2p::No(reason) = answer {
                return Some(format!(
                    "the driver lets {} not {what} memory of {}: {reason}",
                    self.from, self.to
                ));
            }
        }
        None
    }
}

/// An answer about access to a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum P2p {
    /// Yes.
    Ok,
    /// No, for this reason.
    No(String),
    /// The question failed, or its answer is not known here.
    Unknown,
}

/// The least that two GPUs have in common, from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ancestor {
    /// A board.
    Board,
    /// One PCI switch.
    Switch,
    /// Several PCI switches.
    Switches,
    /// A host bridge.
    HostBridge,
    /// A NUMA node.
    Node,
    /// Only the machine.
    System,
}
