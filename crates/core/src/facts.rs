//! What every rank learned about every other rank, identical everywhere by construction.

use serde::{Deserialize, Serialize};

use crate::agreement::gather;
use crate::bootstrap::{Bootstrap, BootstrapError, ranks_in_words};
use crate::vocabulary::vocabulary;

vocabulary! { "topology",
    /// How the ranks of a group reach one another's memory.
    pub enum Topology in Topologies {
        /// Host memory, one node.
        Host = "host",
        /// NVLink between every pair.
        NvlinkFull = "nvlink_full",
        /// NVLink between some pairs.
        NvlinkPartial = "nvlink_partial",
        /// XGMI between every pair.
        XgmiFull = "xgmi_full",
        /// PCI Express.
        Pcie = "pcie",
        /// NVLink across nodes.
        Mnnvl = "mnnvl",
        /// Several nodes and a network.
        MultiNode = "multi_node",
    }
}

vocabulary! { "capability",
    /// What a group can do, on every rank.
    pub enum Cap in Caps {
        /// Peer memory access, proven by copies.
        P2p = "p2p",
        /// Multicast objects.
        Multicast = "multicast",
    }
}

/// Bytes of a processor's caches; 0 where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caches {
    /// The second level.
    pub l2: u64,
    /// The last level.
    pub llc: u64,
}

/// The architecture of a group without a device.
pub const HOST_ARCH: &str = "host";

/// One rank's own report. Differs between ranks; selection never sees it directly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankReport {
    /// `host:pid`, for messages.
    pub label: String,
    /// Identity of the node: equal exactly where ranks share a kernel (boot id), or what the
    /// operator set. Never a hostname.
    pub node: String,
    /// Architecture of the rank's device, such as `sm90`, `gfx942` or `host`.
    pub arch: String,
    /// Device name, such as `NVIDIA H200`; the processor for `host`.
    pub device: String,
    /// Identity of the device itself, such as `GPU-5d3c…`: equal exactly where ranks share one.
    /// Empty on host memory.
    pub unit: String,
    /// How this rank reaches its peers, on its own node.
    pub topology: Topology,
    /// What this rank's device can do.
    pub caps: Caps,
    /// Of its node's first processor.
    pub caches: Caches,
}

/// The part of the agreed facts that selection reads. It can also be stated by hand, to explain a
/// policy for a group that does not exist; a communicator takes it only from [`GroupFacts`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupProfile {
    /// Architecture, if all ranks have the same one; else `mixed`.
    pub arch: String,
    /// Device name, if all ranks have the same one; else `mixed`.
    pub device: String,
    /// Number of ranks.
    pub world: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// How the ranks reach one another.
    pub topology: Topology,
    /// The group's name in policies.
    pub tag: String,
    /// What every rank's device can do.
    pub caps: Caps,
    /// The least of all ranks' caches.
    pub caches: Caches,
}

/// The agreed facts. There is no public constructor: the only way to have one is an exchange, so
/// a function of the facts and a signature is rank-invariant by its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFacts {
    reports: Vec<RankReport>,
    profile: GroupProfile,
}

impl GroupFacts {
    /// Exchanges reports. Collective.
    pub(crate) fn agree(
        boot: &dyn Bootstrap,
        tag: &str,
        mine: RankReport,
    ) -> Result<Self, BootstrapError> {
        let reports = gather(boot, "exchange facts", &mine)?;
        let profile = GroupProfile::of(&reports, tag);
        Ok(GroupFacts { reports, profile })
    }

    /// What selection reads.
    pub fn profile(&self) -> &GroupProfile {
        &self.profile
    }

    /// Every rank's report, in rank order.
    pub fn reports(&self) -> &[RankReport] {
        &self.reports
    }

    /// Ranks of each node, in the order in which nodes first appear.
    pub fn nodes(&self) -> Vec<(&str, Vec<u32>)> {
        let mut nodes: Vec<(&str, Vec<u32>)> = Vec::new();
        for (rank, report) in self.reports.iter().enumerate() {
            match nodes.iter_mut().find(|(id, _)| *id == report.node) {
                Some((_, ranks)) => ranks.push(rank as u32),
                None => nodes.push((&report.node, vec![rank as u32])),
            }
        }
        nodes
    }

    /// Most ranks that are on one device; 1 on host memory.
    pub fn ranks_per_unit(&self) -> u32 {
        self.units().iter().map(|(_, ranks)| ranks.len() as u32).max().unwrap_or(1)
    }

    /// Which ranks share which device, each in words: "ranks 0 and 2 are both on GPU-5d3c…".
    pub fn shared_units(&self) -> Vec<String> {
        let units = self.units();
        let shared = units.iter().filter(|(_, ranks)| ranks.len() > 1);
        let words = shared.map(|(unit, ranks)| {
            let all = if ranks.len() == 2 { "both" } else { "all" };
            format!("{} are {all} on {unit}", ranks_in_words(ranks))
        });
        words.collect()
    }

    /// Ranks of each device, in the order in which devices first appear.
    fn units(&self) -> Vec<(&str, Vec<u32>)> {
        let mut units: Vec<(&str, Vec<u32>)> = Vec::new();
        let on_a_device = (0..).zip(&self.reports).filter(|(_, report)| !report.unit.is_empty());
        for (rank, report) in on_a_device {
            match units.iter_mut().find(|(unit, _)| *unit == report.unit) {
                Some((_, ranks)) => ranks.push(rank),
                None => units.push((&report.unit, vec![rank])),
            }
        }
        units
    }
}

impl GroupProfile {
    fn of(reports: &[RankReport], tag: &str) -> Self {
        let mut nodes: Vec<&str> = reports.iter().map(|r| r.node.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let topology = match common(reports, |r| &r.topology) {
            Some(Topology::Mnnvl) => Topology::Mnnvl,
            Some(one) if nodes.len() == 1 => *one,
            None if nodes.len() == 1 => Topology::Pcie,
            _ => Topology::MultiNode,
        };
        let shared = |of: fn(&RankReport) -> &String| {
            common(reports, of).cloned().unwrap_or_else(|| "mixed".to_owned())
        };
        GroupProfile {
            arch: shared(|r| &r.arch),
            device: shared(|r| &r.device),
            world: reports.len() as u32,
            nodes: nodes.len() as u32,
            topology,
            tag: tag.to_owned(),
            caps: reports.iter().fold(Caps::ALL, |caps, r| caps.intersection(r.caps)),
            caches: Caches {
                l2: least(reports, |caches| caches.l2),
                llc: least(reports, |caches| caches.llc),
            },
        }
    }
}

fn least(reports: &[RankReport], of: fn(&Caches) -> u64) -> u64 {
    reports.iter().map(|report| of(&report.caches)).min().unwrap_or(0)
}

/// The value that all reports share.
fn common<T: PartialEq>(reports: &[RankReport], of: fn(&RankReport) -> &T) -> Option<&T> {
    let first = of(reports.first()?);
    reports.iter().all(|r| of(r) == first).then_some(first)
}
