//! How a machine is built: the NUMA node and the core of each processor.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::list::parse;

/// Where a processor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// The number of its NUMA node.
    pub node: usize,
    /// A number that it shares with the other threads of its core, and with nobody else: that of
    /// the first of them.
    pub core: usize,
}

/// The seats of a machine's processors, by their numbers. A processor that it does not hold is a
/// core by itself, on node 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    seats: BTreeMap<usize, Seat>,
}

/// The processors of one core that are allowed, ascending.
pub(super) type Core = Vec<usize>;
/// The cores of one node that have a processor that is allowed.
pub(super) type Node = Vec<Core>;

impl Machine {
    /// Reads the seats of `processors` from Linux's sysfs, mounted at `root` (`/sys`). What is
    /// not told there, or not understood, is left out: a container may hide all of it.
    pub fn read(root: &Path, processors: &[usize]) -> Machine {
        let nodes = nodes(&root.join("devices/system/node"));
        let folder = root.join("devices/system/cpu");
        let seat = |processor: &usize| {
            let core = first_of_core(&folder.join(format!("cpu{processor}/topology")));
            let node = nodes.get(processor).copied().unwrap_or(0);
            (*processor, Seat { node, core: core.unwrap_or(*processor) })
        };
        processors.iter().map(seat).collect()
    }

    /// The nodes that have a processor of `allowed`, in their numbers' order, with their cores in
    /// the order of their first processors.
    pub(super) fn nodes(&self, allowed: &[usize]) -> Vec<Node> {
        let mut nodes: BTreeMap<usize, BTreeMap<usize, Core>> = BTreeMap::new();
        for processor in allowed {
            let alone = Seat { node: 0, core: *processor };
            let Seat { node, core } = self.seats.get(processor).copied().unwrap_or(alone);
            nodes.entry(node).or_default().entry(core).or_default().push(*processor);
        }
        nodes.into_values().map(|cores| cores.into_values().collect()).collect()
    }
}

impl FromIterator<(usize, Seat)> for Machine {
    fn from_iter<I: IntoIterator<Item = (usize, Seat)>>(seats: I) -> Machine {
        Machine { seats: seats.into_iter().collect() }
    }
}

/// The node of each processor. Nodes of memory alone have an empty list.
fn nodes(folder: &Path) -> BTreeMap<usize, usize> {
    let mut nodes = BTreeMap::new();
    let Ok(entries) = fs::read_dir(folder) else { return nodes };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node")?.parse().ok());
        let list = fs::read_to_string(entry.path().join("cpulist")).ok();
        if let (Some(number), Some(processors)) = (number, list.and_then(|text| parse(&text))) {
            nodes.extend(processors.into_iter().map(|processor| (processor, number)));
        }
    }
    nodes
}

/// Kernels before 5.3 have the second name alone.
fn first_of_core(topology: &Path) -> Option<usize> {
    let names = ["core_cpus_list", "thread_siblings_list"];
    let text = names.iter().find_map(|name| fs::read_to_string(topology.join(name)).ok())?;
    parse(&text)?.into_iter().min()
}
