//! A group that nobody formed, stated by hand: for `crossover explain`, and for `[[expect]]`.

use crossover_core::facts::{Cap, Caps, GroupProfile, HOST_ARCH, Topology};

/// What is said of a group; the rest is as groups of its architecture usually are.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StatedGroup {
    /// Architecture of its devices; `host` if absent.
    pub arch: Option<String>,
    /// Name of its devices; none if absent.
    pub device: Option<String>,
    /// Number of ranks; 2 if absent.
    pub world: Option<u32>,
    /// Number of nodes; 1 if absent, and 2 for the topology `multi_node`.
    pub nodes: Option<u32>,
    /// How the ranks reach one another; if absent `nvlink_full` for `sm*`, `xgmi_full` for `gfx*`,
    /// else `host`.
    pub topology: Option<Topology>,
    /// What every rank can do; if absent `p2p` for `nvlink_full`, `xgmi_full` and `mnnvl`, else
    /// nothing.
    pub caps: Option<Caps>,
    /// Its name in policies; `world` if absent.
    pub tag: Option<String>,
}

impl StatedGroup {
    /// The whole profile.
    pub fn profile(self) -> GroupProfile {
        let arch = self.arch.unwrap_or_else(|| HOST_ARCH.to_owned());
        let topology = self.topology.unwrap_or(match arch.as_str() {
            arch if arch.starts_with("sm") => Topology::NvlinkFull,
            arch if arch.starts_with("gfx") => Topology::XgmiFull,
            _ => Topology::Host,
        });
        // These topologies are stated only where copies between all pairs have been seen to work.
        let proven = [Topology::NvlinkFull, Topology::XgmiFull, Topology::Mnnvl];
        let usual = if proven.contains(&topology) { Caps::of(&[Cap::P2p]) } else { Caps::NONE };
        GroupProfile {
            arch,
            device: self.device.unwrap_or_default(),
            world: self.world.unwrap_or(2),
            nodes: self.nodes.unwrap_or(if topology == Topology::MultiNode { 2 } else { 1 }),
            topology,
            tag: self.tag.unwrap_or_else(|| "world".to_owned()),
            caps: self.caps.unwrap_or(usual),
            caches: Default::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_as_usual() {
        let of = |arch: &str| StatedGroup { arch: Some(arch.to_owned()), ..StatedGroup::default() };
        let told = |group: StatedGroup| {
            let GroupProfile { arch, world, nodes, topology, tag, caps, .. } = group.profile();
            format!("{tag}: {arch} x{world} on {nodes}, {topology}, {caps}")
        };
        assert_eq!(told(StatedGroup::default()), "world: host x2 on 1, host, none");
        assert_eq!(told(of("sm103")), "world: sm103 x2 on 1, nvlink_full, p2p");
        assert_eq!(told(of("gfx942")), "world: gfx942 x2 on 1, xgmi_full, p2p");
        let over_network = StatedGroup { topology: Some(Topology::MultiNode), ..of("sm90") };
        assert_eq!(told(over_network.clone()), "world: sm90 x2 on 2, multi_node, none");
        let stated = StatedGroup { nodes: Some(1), world: Some(8), ..over_network };
        assert_eq!(told(stated), "world: sm90 x8 on 1, multi_node, none");
        let nothing = StatedGroup { caps: Some(Caps::NONE), ..of("sm90") };
        assert_eq!(told(nothing), "world: sm90 x2 on 1, nvlink_full, none");
    }
}
