//! A node, and its links.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::numbered;
use super::properties::Properties;
use crate::error::DeviceError;
use crate::topology::pci::PciAddress;

/// A processor or a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number, by which links name it.
    pub number: u32,
    /// Architecture as policies write it, such as `gfx942`; empty for a processor.
    pub arch: String,
    /// What identifies the board; 0 where it has none.
    pub unique_id: u64,
    /// Where it is; that of a partition is its board's.
    pub pci: PciAddress,
    /// Number of the partition of its board.
    pub partition: u8,
    /// Is its board divided into partitions? Those have one identity and one address.
    pub divided: bool,
    /// The hive: GPUs that XGMI joins have the same one. 0 is none.
    pub hive: u64,
    /// Compute units.
    pub compute_units: u32,
    /// Bytes of its own memory.
    pub memory: u64,
    /// Its links, by the kernel's numbers.
    pub links: Vec<Link>,
}

/// A way from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// What it is made of.
    pub kind: LinkKind,
    /// The other node.
    pub to: u32,
    /// The kernel's distance.
    pub weight: u32,
    /// May it be used?
    pub enabled: bool,
}

/// What a link is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// PCI Express.
    Pcie,
    /// AMD's own.
    Xgmi,
    /// Something else, by the kernel's number.
    Other(u32),
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkKind::Pcie => f.write_str("PCI Express"),
            LinkKind::Xgmi => f.write_str("XGMI"),
            LinkKind::Other(number) => write!(f, "of the kernel's type {number}"),
        }
    }
}

/// The kernel's numbers of types of links and of banks, and its bits (`kfd_crat.h`).
mod kernel {
    pub(super) const PCIE: u32 = 2;
    pub(super) const XGMI: u32 = 11;
    pub(super) const ENABLED: u32 = 1;
    pub(super) const FRAME_BUFFER_PUBLIC: u32 = 1;
    pub(super) const FRAME_BUFFER_PRIVATE: u32 = 2;
    /// The distance of one XGMI hop.
    pub(super) const HOP: u32 = 15;
    /// The distance within a socket: between a board's partitions, and from each to its own links.
    pub(super) const IN_SOCKET: u32 = 13;
}

impl Node {
    /// Is it a GPU?
    pub fn is_gpu(&self) -> bool {
        !self.arch.is_empty()
    }

    /// `GPU-` and 16 digits, as AMD's runtime writes it, and where the board is divided `/` and the
    /// partition.
    pub fn uuid(&self) -> String {
        if self.divided { format!("{}/{}", self.board(), self.partition) } else { self.board() }
    }

    /// `GPU-` and 16 digits: the board. One without identity has its address instead.
    pub fn board(&self) -> String {
        match self.unique_id {
            0 => format!("GPU-{}", self.pci),
            id => format!("GPU-{id:016x}"),
        }
    }

    /// The best link to another node.
    pub fn link_to(&self, node: u32) -> Option<&Link> {
        let links = self.links.iter().filter(|link| link.to == node);
        links.min_by_key(|link| (link.kind != LinkKind::Xgmi, !link.enabled, link.weight))
    }
}

impl Link {
    /// XGMI hops, from the kernel's distance; between the partitions of a board, and between those
    /// of two joined boards, it is one.
    pub fn hops(&self) -> u32 {
        if self.weight == kernel::IN_SOCKET {
            return 1;
        }
        let ends = 2 * kernel::IN_SOCKET;
        if self.weight == ends + kernel::HOP {
            return 1;
        }
        self.weight / kernel::HOP
    }
}

/// Reads a node's folder; `None` if this process may not see it.
pub(super) fn read(number: u32, folder: &Path) -> Result<Option<Node>, DeviceError> {
    let Some(values) = Properties::read(folder.join("properties"))? else { return Ok(None) };
    let location: u32 = values.optional("location_id")?.unwrap_or(0);
    let simds: u32 = values.number("simd_count")?;
    let simds_per_unit: u32 = values.optional("simd_per_cu")?.unwrap_or(0);
    let version: u32 = values.optional("gfx_target_version")?.unwrap_or(0);
    if simds > 0 && version == 0 {
        let why = "a node with SIMDs has a `gfx_target_version`";
        return Err(values.reject("simd_count", why));
    }
    let arch = match version {
        0 => String::new(),
        version => arch(version)
            .ok_or_else(|| values.reject("gfx_target_version", "it names no architecture"))?,
    };
    Ok(Some(Node {
        number,
        arch,
        unique_id: values.optional("unique_id")?.unwrap_or(0),
        pci: PciAddress {
            domain: values.optional("domain")?.unwrap_or(0),
            bus: location.to_be_bytes()[2],
            device: location.to_be_bytes()[3] >> 3,
            function: location.to_be_bytes()[3] & 0b111,
        },
        // The kernel puts a partition's number into the highest four bits of its board's location.
        partition: location.to_be_bytes()[0] >> 4,
        divided: false, // only all nodes together tell
        hive: values.optional("hive_id")?.unwrap_or(0),
        compute_units: simds.checked_div(simds_per_unit).unwrap_or(0),
        memory: memory(&folder.join("mem_banks"))?,
        links: links(number, &folder.join("io_links"))?,
    }))
}

/// `gfx942` of 90402: major, minor and stepping in two decimal digits each; the last two of the
/// name are hexadecimal.
fn arch(version: u32) -> Option<String> {
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    (minor < 16 && stepping < 16).then(|| format!("gfx{major}{minor:x}{stepping:x}"))
}

fn links(number: u32, folder: &Path) -> Result<Vec<Link>, DeviceError> {
    let mut links = Vec::new();
    for (_, path) in numbered(folder)? {
        let Some(values) = Properties::read(path.join("properties"))? else { continue };
        if values.number::<u32>("node_from")? != number {
            return Err(
                values.reject("node_from", &format!("a link of node {number} begins there"))
            );
        }
        links.push(Link {
            kind: match values.number("type")? {
                kernel::PCIE => LinkKind::Pcie,
                kernel::XGMI => LinkKind::Xgmi,
                other => LinkKind::Other(other),
            },
            to: values.number("node_to")?,
            weight: values.number("weight")?,
            enabled: values.number::<u32>("flags")? & kernel::ENABLED != 0,
        });
    }
    Ok(links)
}

fn memory(folder: &Path) -> Result<u64, DeviceError> {
    let mut bytes: u64 = 0;
    for (_, path) in numbered(folder)? {
        let Some(values) = Properties::read(path.join("properties"))? else { continue };
        let heap: u32 = values.number("heap_type")?;
        if matches!(heap, kernel::FRAME_BUFFER_PUBLIC | kernel::FRAME_BUFFER_PRIVATE) {
            bytes = bytes.saturating_add(values.number("size_in_bytes")?);
        }
    }
    Ok(bytes)
}
