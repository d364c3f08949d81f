//! Which groups can be. What breaks one of these laws is no witness for anything.

use crossover_core::call::{CallKind, Mode};
use crossover_core::eligibility::Eligibility;
use crossover_core::facts::{Cap, GroupProfile, HOST_ARCH, Topology};
use crossover_core::policy::Rule;
use crossover_core::registry::Registry;

/// The laws, and what backends say about groups on the host.
pub(crate) struct Laws {
    on_host: Vec<&'static Eligibility>,
    across_hosts: bool,
}

impl Laws {
    /// What backends say; groups of host memory over several nodes are witnesses where a rule is about
    /// them: most policies are of devices, and owe such groups nothing.
    pub(crate) fn new<'r>(registry: &Registry, rules: impl IntoIterator<Item = &'r Rule>) -> Laws {
        let algorithms = registry.descriptors().into_iter().flat_map(|d| d.algorithms);
        let all = algorithms.map(|a| &a.eligibility);
        // Only devices record graphs: what spans nodes and takes none is about host memory.
        let spans = |e: &&Eligibility| {
            e.topologies.contains(Topology::MultiNode) && !e.modes.contains(Mode::Graph)
        };
        let on_host = |e: &&Eligibility| e.topologies.contains(Topology::Host) || spans(e);
        let across_hosts = rules.into_iter().any(|rule| {
            let on_host = rule.when.arch.iter().flatten().any(|arch| arch == HOST_ARCH);
            let spans = rule.when.topology.is_some_and(|all| all.contains(Topology::MultiNode));
            on_host && spans
        });
        Laws { on_host: all.filter(on_host).collect(), across_hosts }
    }

    /// Can there be such a group?
    pub(crate) fn allow(&self, group: &GroupProfile) -> bool {
        self.link_fits_device(group) && nodes_fit_link(group) && caps_fit_link(group)
    }

    /// Links belong to vendors. A group without a device has host memory alone, and at most as many
    /// ranks as a backend of host memory takes.
    fn link_fits_device(&self, group: &GroupProfile) -> bool {
        let host = group.arch == HOST_ARCH;
        match group.topology {
            Topology::Host => host && self.host_has(group),
            Topology::NvlinkFull | Topology::NvlinkPartial | Topology::Mnnvl => {
                group.arch.starts_with("sm")
            }
            Topology::XgmiFull => group.arch.starts_with("gfx"),
            Topology::MultiNode => !host || self.across_hosts && self.host_has(group),
            Topology::Pcie => !host,
        }
    }

    fn host_has(&self, group: &GroupProfile) -> bool {
        let takes = |e: &&Eligibility| {
            e.topologies.contains(group.topology) && e.worlds.contains(group.world)
        };
        self.on_host.iter().any(takes)
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
    multicast && (group.arch != HOST_ARCH || group.caps.is_empty())
}

/// Can such a group make such a call? Only devices record graphs.
pub(super) fn call_is_possible(group: &GroupProfile, call: &CallKind) -> bool {
    call.mode == Mode::Eager || group.arch != HOST_ARCH
}
