//! What joins each pair of devices, for a person to read: a table, as the vendors' tools print it.

use std::fmt;

use serde::{Serialize, Serializer};

use super::nvidia::wire;
use crate::topology::facts::{Ancestor, NvidiaFacts};
use crate::topology::kfd::{AmdFacts, LinkKind};

/// The nearest way from one device to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Join {
    /// They are one device.
    Same,
    /// So many NVLinks, straight or through switches.
    Nvlink(usize),
    /// XGMI, in so many hops.
    Xgmi(u32),
    /// PCI Express, which meets where this says.
    Pcie(Option<Ancestor>),
    /// Nothing is said of them.
    Unknown,
}

/// In the words of `nvidia-smi topo -m`, which operators know: `NV18`, `PIX`, `PHB`, `SYS`.
impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Join::Same => "X",
            Join::Nvlink(links) => return write!(f, "NV{links}"),
            Join::Xgmi(1) => "XGMI",
            Join::Xgmi(hops) => return write!(f, "XGMI*{hops}"),
            Join::Pcie(None) => "PCIE",
            Join::Pcie(Some(Ancestor::Board)) => "PSB",
            Join::Pcie(Some(Ancestor::Switch)) => "PIX",
            Join::Pcie(Some(Ancestor::Switches)) => "PXB",
            Join::Pcie(Some(Ancestor::HostBridge)) => "PHB",
            Join::Pcie(Some(Ancestor::Node)) => "NODE",
            Join::Pcie(Some(Ancestor::System)) => "SYS",
            Join::Unknown => "?",
        })
    }
}

impl Serialize for Join {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Every device against every other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Matrix {
    /// UUIDs, in the order of rows and columns.
    pub devices: Vec<String>,
    /// A row a device.
    pub joins: Vec<Vec<Join>>,
}

impl Matrix {
    /// The table of these GPUs, or MIG instances, of NVIDIA's.
    pub fn nvidia(facts: &NvidiaFacts, devices: &[String]) -> Matrix {
        Matrix::of(devices, |from, to| {
            let (Some(gpu), Some(peer)) = (facts.gpu_of(from), facts.gpu_of(to)) else {
                return Join::Unknown;
            };
            match wire(facts, from, to) {
                Ok(wire) => Join::Nvlink(wire.links),
                // Two instances of one GPU meet on its board.
                Err(_) if gpu.uuid == peer.uuid => Join::Pcie(Some(Ancestor::Board)),
                Err(_) => Join::Pcie(facts.pair(&gpu.uuid, &peer.uuid).and_then(|p| p.ancestor)),
            }
        })
    }

    /// The table of these GPUs of AMD's, named as [`crate::topology::kfd::Node::uuid`] does.
    pub fn amd(facts: &AmdFacts, devices: &[String]) -> Matrix {
        Matrix::of(devices, |from, to| {
            let (Some(gpu), Some(peer)) = (facts.gpu(from), facts.gpu(to)) else {
                return Join::Unknown;
            };
            match gpu.link_to(peer.number).filter(|link| link.enabled) {
                Some(link) if link.kind == LinkKind::Xgmi => Join::Xgmi(link.hops()),
                Some(link) if link.kind == LinkKind::Pcie => Join::Pcie(None),
                _ => Join::Unknown,
            }
        })
    }

    fn of(devices: &[String], join: impl Fn(&str, &str) -> Join) -> Matrix {
        let cell = |from: &String, to: &String| match from == to {
            true => Join::Same,
            false => join(from, to),
        };
        let row = |from| devices.iter().map(|to| cell(from, to)).collect();
        Matrix { devices: devices.to_vec(), joins: devices.iter().map(row).collect() }
    }
}

/// Columns of one width, devices by their place in [`Matrix::devices`]; no line break at the end.
impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = self.joins.iter().flatten().map(|join| join.to_string().len());
        let width = cells.chain([3]).max().unwrap_or_default() + 1;
        write!(f, "{:4}", "")?;
        for to in 0..self.devices.len() {
            write!(f, "{to:>width$}")?;
        }
        for (from, row) in self.joins.iter().enumerate() {
            write!(f, "\n{from:<4}")?;
            for join in row {
                write!(f, "{:>width$}", join.to_string())?;
            }
        }
        Ok(())
    }
}
