//! How the devices of a group reach one another, and the sentence that says why.

mod amd;
mod matrix;
mod nodes;
mod nvidia;

use std::fmt;

pub use amd::amd;
pub use matrix::{Join, Matrix};
pub use nodes::across;
pub use nvidia::nvidia;

/// How devices reach one another's memory. What the wires are, not whether they
/// work: that is proven by [`crate::verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// All ranks are on one device.
    OneDevice,
    /// NVLink between every pair.
    NvlinkFull,
    /// NVLink between some pairs.
    NvlinkPartial,
    /// XGMI between every pair, in one hop.
    XgmiFull,
    /// PCI Express for all that is known.
    Pcie,
    /// NVLink across nodes.
    Mnnvl,
    /// Several nodes, and only a network.
    MultiNode,
}

impl Reach {
    /// The word of policies' `topology`. Ranks on one device use its memory, which is faster than
    /// any link, so that rules for the best links are the right ones.
    pub fn class(self) -> &'static str {
        match self {
            Reach::OneDevice | Reach::NvlinkFull => "nvlink_full",
            Reach::NvlinkPartial => "nvlink_partial",
            Reach::XgmiFull => "xgmi_full",
            Reach::Pcie => "pcie",
            Reach::Mnnvl => "mnnvl",
            Reach::MultiNode => "multi_node",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How they reach one another.
    pub reach: Reach,
    /// Why, in one sentence with the devices that decide.
    pub why: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reach.class(), self.why)
    }
}

/// The group's different devices, in the group's order.
fn distinct(group: &[String]) -> Vec<&str> {
    let mut devices: Vec<&str> = Vec::new();
    for uuid in group {
        if !devices.contains(&uuid.as_str()) {
            devices.push(uuid);
        }
    }
    devices
}

fn one_device(uuid: &str, ranks: usize) -> Finding {
    let why = match ranks {
        1 => format!("one device, {uuid}"),
        _ => format!("one device: all {ranks} ranks are on {uuid}"),
    };
    Finding { reach: Reach::OneDevice, why }
}

/// The unordered pairs of `devices`.
fn pairs<'a>(devices: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    let pairs = devices.iter().enumerate();
    pairs.flat_map(|(at, a)| devices[at + 1..].iter().map(move |b| (*a, *b))).collect()
}
