//! Which groups can be. What breaks one of these laws is no witness for anything.

use crossover_core::call::{CallKind, Mode};
use crossover_core::eligibility::Eligibility;
use crossover_core::facts::{Cap, GroupProfile, HOST_ARCH, Topology};
use crossover_core::registry::Registry;

/// The laws, and what backends say about groups on the host.
pub(crate) struct Laws {
    on_host: Vec<&'static Eligibility>,
}

impl Laws {
    pub(crate) fn new(registry: &Registry) -> Laws {
        let algorithms = registry.descriptors().into_iter().flat_map(|d| d.algorithms);
        let all = algorithms.map(|a| &a.eligibility);
        Laws { on_host: all.filter(|e| e.topologies.contains(Topology::Host)).collect() }
    }

    /// Can there be such a group?
    pub(crate) fn allow(&self, group: &GroupProfile) -> bool {
        self.link_fits_device(group) && nodes_fit_link(group) && caps_fit_link(group)
    }

    /// Links belong to vendors. A group without a device has host memory alone, and at most as many
    /// ranks as shared memory takes.
    fn link_fits_device(&self, group: &GroupProfile) -> bool {
        let host = group.arch == HOST_ARCH;
        match group.topology {
            Topology::Host => host && self.on_host.iter().any(|e| e.worlds.contains(group.world)),
            Topology::NvlinkFull | Topology::NvlinkPartial | Topology::Mnnvl => {
                group.arch.starts_with("sm")
            }
            Topology::XgmiFull => group.arch.starts_with("gfx"),
            Topology::Pcie | Topology::MultiNode => !host,
        }
    }
}

/// Two topologies span nodes, and one of them can also be within a node. Every node has a rank.
fn nodes_fit_link(group: &GroupProfile) -> bool {
    let legal = match group.topology {
        Topology::MultiNode => group.nodes >= 2,
        Topology::Mnnvl => group.nodes >= 1,
        _ => group.nodes == 1,
    };
    legal && group.nodes <= group.world
}

/// A switch multicasts, where peers are reachable as well; the host has no capability.
fn caps_fit_link(group: &GroupProfile) -> bool {
    let switched = matches!(group.topology, Topology::NvlinkFull | Topology::Mnnvl);
    let multicast =
        !group.caps.contains(Cap::Multicast) || (switched && group.caps.contains(Cap::P2p));
    multicast && (group.topology != Topology::Host || group.caps.is_empty())
}

/// Can such a group make such a call? Only devices record graphs.
pub(super) fn call_is_possible(group: &GroupProfile, call: &CallKind) -> bool {
    call.mode == Mode::Eager || group.topology != Topology::Host
}
