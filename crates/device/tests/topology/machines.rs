//! Machines as their management library or kernel would tell of them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crossover_device::topology::fabric::{Fabric, State};
use crossover_device::topology::facts::{
    Ancestor, Gpu, Instance, Link, NvidiaFacts, P2p, Pair, Remote,
};
use crossover_device::topology::pci::PciAddress;

/// A name that is the same in every test: `gpu(3)`.
pub(crate) fn gpu(number: u32) -> String {
    format!("GPU-{number:08x}-0000-4000-8000-000000000000")
}

/// The group of these GPUs.
pub(crate) fn group(numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(|number| gpu(*number)).collect()
}

pub(crate) fn pci(number: u32) -> PciAddress {
    PciAddress { domain: 0, bus: 0x10 + u8::try_from(number).unwrap(), device: 0, function: 0 }
}

/// GPUs without links, of which the driver lets all use one another over PCI Express.
pub(crate) fn pcie(count: u32) -> NvidiaFacts {
    let gpus = (0..count).map(|number| Gpu {
        uuid: gpu(number),
        name: "NVIDIA L40S".to_owned(),
        pci: pci(number),
        mig: false,
        instances: Vec::new(),
        links: Vec::new(),
        fabric: None,
    });
    let numbers = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    let pairs = numbers.filter(|(from, to)| from != to).map(|(from, to)| Pair {
        from: gpu(from),
        to: gpu(to),
        read: P2p::Ok,
        write: P2p::Ok,
        nvlink: P2p::No("it is not supported".to_owned()),
        ancestor: Some(Ancestor::HostBridge),
    });
    NvidiaFacts { driver: "580.65.06".to_owned(), gpus: gpus.collect(), pairs: pairs.collect() }
}

/// `links` more links that are up between each of these pairs, which the driver confirms.
pub(crate) fn bridged(mut facts: NvidiaFacts, pairs: &[(u32, u32)], links: u32) -> NvidiaFacts {
    for &(a, b) in pairs {
        for (from, to) in [(a, b), (b, a)] {
            for _ in 0..links {
                add_link(&mut facts, from, true, Remote::Gpu(pci(to)));
            }
            pair(&mut facts, from, to).nvlink = P2p::Ok;
        }
    }
    facts
}

/// GPUs with `up` of 18 links to switches up, all joined.
pub(crate) fn switched(count: u32, up: u32) -> NvidiaFacts {
    let mut facts = pcie(count);
    for number in 0..count {
        for link in 0..18 {
            let remote = if link < up { Remote::Switch } else { Remote::Unknown };
            add_link(&mut facts, number, link < up, remote);
        }
    }
    facts.pairs.iter_mut().for_each(|pair| pair.nvlink = P2p::Ok);
    facts
}

pub(crate) fn add_link(facts: &mut NvidiaFacts, gpu: u32, up: bool, remote: Remote) {
    let links = &mut facts.gpus[gpu as usize].links;
    links.push(Link { number: u32::try_from(links.len()).unwrap(), up, remote });
}

pub(crate) fn pair(facts: &mut NvidiaFacts, from: u32, to: u32) -> &mut Pair {
    let (from, to) = (gpu(from), gpu(to));
    facts.pairs.iter_mut().find(|pair| pair.from == from && pair.to == to).unwrap()
}

/// A GPU that is divided into so many instances.
pub(crate) fn divide(facts: &mut NvidiaFacts, number: u32, parts: u32) {
    let gpu = &mut facts.gpus[number as usize];
    gpu.mig = true;
    gpu.instances = (0..parts)
        .map(|part| Instance {
            uuid: format!("MIG-{number:08x}-{part:04x}-5000-8000-000000000000"),
            gpu_instance: 7 + part,
            compute_instance: 0,
        })
        .collect();
}

/// A GPU's place in a clique.
pub(crate) fn clique(clique: u32) -> Option<Fabric> {
    let cluster = "0123456789abcdef0123456789abcdef".to_owned();
    Some(Fabric { cluster, clique, state: State::Completed, status: 0, health: 0 })
}

/// A node of AMD's kernel driver, before it is written to a folder.
pub(crate) struct Node {
    pub(crate) version: u32,
    pub(crate) unique_id: u64,
    pub(crate) location: u32,
    /// Other node, type, weight, flags.
    pub(crate) links: Vec<(u32, u32, u32, u32)>,
}

/// Two processors, and eight MI300X that XGMI joins.
pub(crate) fn mi300x() -> Vec<Node> {
    let mut nodes = processors(2);
    for number in 2..10 {
        let processor = (number - 2) / 4;
        let mut links = vec![(processor, 2, 20, 1)];
        links.extend((2..10).filter(|to| *to != number).map(|to| (to, 11, 15, 1)));
        nodes.push(Node {
            version: 90_402,
            unique_id: 0x1000 + u64::from(number),
            location: number << 8,
            links,
        });
    }
    nodes
}

/// A processor and two GPUs that only PCI Express joins.
pub(crate) fn radeons() -> Vec<Node> {
    let mut nodes = processors(1);
    for number in 1..3 {
        nodes.push(Node {
            version: 110_000,
            unique_id: 0xabc0 + u64::from(number),
            location: number << 8,
            links: vec![(0, 2, 20, 1), (3 - number, 2, 40, 1)],
        });
    }
    nodes
}

/// A processor and two MI300X, each divided into two partitions of one identity and address.
pub(crate) fn divided() -> Vec<Node> {
    let mut nodes = processors(1);
    for number in 1..5 {
        let (board, partition) = ((number - 1) / 2, (number - 1) % 2);
        let peers = (1..5).filter(|to| *to != number).map(|to| {
            // Within a board a socket's distance; to another, two of them and a hop.
            let weight = if (to - 1) / 2 == board { 13 } else { 41 };
            (to, 11, weight, 1)
        });
        nodes.push(Node {
            version: 90_402,
            unique_id: 0xb0a0_0000_0000_0000 + u64::from(board),
            location: (0x20 + board) << 8 | partition << 28, // size: none, the kernel's location
            links: peers.chain([(0, 2, 20, 1)]).collect(),
        });
    }
    nodes
}

fn processors(count: u32) -> Vec<Node> {
    let node = |_| Node { version: 0, unique_id: 0, location: 0, links: vec![] };
    (0..count).map(node).collect()
}

/// Writes nodes as the kernel shows them.
pub(crate) fn write(nodes: &[Node], folder: &Path) {
    for (number, node) in nodes.iter().enumerate() {
        let folder = folder.join(number.to_string());
        let (is_gpu, links) = (node.version > 0, node.links.len());
        let values = [
            ("cpu_cores_count", if is_gpu { 0 } else { 96 }),
            ("simd_count", if is_gpu { 1216 } else { 0 }),
            ("mem_banks_count", 1),
            ("io_links_count", links as u64),
            ("simd_per_cu", if is_gpu { 4 } else { 0 }),
            ("gfx_target_version", u64::from(node.version)),
            ("vendor_id", if is_gpu { 4098 } else { 0 }),
            ("location_id", u64::from(node.location)),
            ("domain", 0),
            ("hive_id", if links > 2 { 0xfeed } else { 0 }),
            ("unique_id", node.unique_id),
            ("num_xcc", u64::from(is_gpu)),
        ];
        lines(&folder.join("properties"), &values);
        let heap = if is_gpu { 1 } else { 0 };
        let bank = [("heap_type", heap), ("size_in_bytes", 206_141_652_992), ("flags", 0)];
        lines(&folder.join("mem_banks/0/properties"), &bank);
        for (at, (to, kind, weight, flags)) in node.links.iter().enumerate() {
            let values = [
                ("type", u64::from(*kind)),
                ("version_major", 0),
                ("node_from", number as u64),
                ("node_to", u64::from(*to)),
                ("weight", u64::from(*weight)),
                ("max_bandwidth", 64_000),
                ("flags", u64::from(*flags)),
            ];
            lines(&folder.join(format!("io_links/{at}/properties")), &values);
        }
    }
}

fn lines(path: &Path, values: &[(&str, u64)]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = values.iter().fold(String::new(), |mut text, (name, value)| {
        writeln!(text, "{name} {value}").unwrap();
        text
    });
    fs::write(path, text).unwrap();
}
