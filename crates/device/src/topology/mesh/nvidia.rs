//! NVLink between the GPUs of a group.

use super::{Finding, Reach, distinct, one_device, pairs};
use crate::error::DeviceError;
use crate::topology::fabric::Fabric;
use crate::topology::facts::{Gpu, NvidiaFacts, P2p, Remote};

/// How the devices of `group`, one UUID a rank, reach one another.
///
/// # Errors
/// [`DeviceError::Invalid`] if the facts know no such device, or the group is of nobody.
pub fn nvidia(facts: &NvidiaFacts, group: &[String]) -> Result<Finding, DeviceError> {
    let devices = distinct(group);
    for uuid in &devices {
        if facts.gpu_of(uuid).is_none() {
            let known: Vec<&str> = facts.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
            return Err(DeviceError::Invalid(format!(
                "NVML knows no device {uuid} on this machine; it has {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        }
    }
    match devices.as_slice() {
        [] => Err(DeviceError::Invalid("a group without devices has no topology".to_owned())),
        [one] => Ok(one_device(one, group.len())),
        _ => Ok(wires(facts, &devices)),
    }
}

fn wires(facts: &NvidiaFacts, devices: &[&str]) -> Finding {
    let pairs = pairs(devices);
    let mut least: Option<Wire> = None;
    let mut linked = 0;
    let mut missing = None;
    for (a, b) in &pairs {
        match wire(facts, a, b) {
            Ok(wire) => {
                linked += 1;
                if least.as_ref().is_none_or(|known| wire.links < known.links) {
                    least = Some(wire);
                }
            }
            Err(why) => {
                missing.get_or_insert_with(|| format!("no NVLink between {a} and {b}: {why}"));
            }
        }
    }
    match (missing, least) {
        (None, Some(least)) => {
            Finding { reach: Reach::NvlinkFull, why: format!("NVLink between every pair, {least}") }
        }
        (Some(why), Some(_)) => Finding {
            reach: Reach::NvlinkPartial,
            why: format!("{why} (linked are {linked} of {} pairs)", pairs.len()),
        },
        (why, None) => Finding { reach: Reach::Pcie, why: why.unwrap_or_default() },
    }
}

/// What joins two GPUs.
pub(super) struct Wire {
    pub(super) links: usize,
    switched: bool,
}

impl std::fmt::Display for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let through = if self.switched { " through switches" } else { "" };
        write!(f, "at least {} links{through}", self.links)
    }
}

/// The wire between two devices, or why there is none.
pub(super) fn wire(facts: &NvidiaFacts, a: &str, b: &str) -> Result<Wire, String> {
    let (Some(gpu_a), Some(gpu_b)) = (facts.gpu_of(a), facts.gpu_of(b)) else {
        return Err("NVML does not know both".to_owned());
    };
    for (uuid, gpu) in [(a, gpu_a), (b, gpu_b)] {
        if gpu.uuid != uuid {
            return Err(format!("{uuid} is a MIG instance, which has no links"));
        }
    }
    // NVML's own answer may only veto: it says yes for what could be, with links down.
    for (from, to) in [(gpu_a, gpu_b), (gpu_b, gpu_a)] {
        if let Some(P2p::No(why)) = facts.pair(&from.uuid, &to.uuid).map(|pair| &pair.nvlink) {
            return Err(format!("the driver says, {why}"));
        }
    }
    let direct = direct(gpu_a, gpu_b).max(direct(gpu_b, gpu_a));
    if direct > 0 {
        return Ok(Wire { links: direct, switched: false });
    }
    let (to_switches_a, to_switches_b) = (switched(gpu_a), switched(gpu_b));
    let links = to_switches_a.min(to_switches_b);
    if links > 0 {
        return match (&gpu_a.fabric, &gpu_b.fabric) {
            // Which switches is not compared: those of one baseboard can be joined to another's.
            (Some(a), Some(b)) if apart(a, b) => {
                Err(format!("they are in cliques {} and {} of their fabric", a.clique, b.clique))
            }
            _ => Ok(Wire { links, switched: true }),
        };
    }
    for gpu in [gpu_a, gpu_b] {
        if gpu.links_up() == 0 {
            let there = gpu.links.len();
            return Err(match there {
                0 => format!("{} has no links", gpu.uuid),
                _ => format!("none of {}'s {there} links is up", gpu.uuid),
            });
        }
    }
    // Some virtual machines hide where links end. Both GPUs have links up, and the driver says
    // that they lead to one another.
    let says_so = facts.pair(&gpu_a.uuid, &gpu_b.uuid).is_some_and(|pair| pair.nvlink == P2p::Ok);
    let links = hidden(gpu_a).min(hidden(gpu_b));
    if says_so && links > 0 {
        return Ok(Wire { links, switched: false });
    }
    Err("their links lead elsewhere".to_owned())
}

fn direct(from: &Gpu, to: &Gpu) -> usize {
    count(from, |remote| *remote == Remote::Gpu(to.pci))
}

fn switched(gpu: &Gpu) -> usize {
    count(gpu, |remote| *remote == Remote::Switch)
}

fn hidden(gpu: &Gpu) -> usize {
    count(gpu, |remote| *remote == Remote::Unknown)
}

fn count(gpu: &Gpu, ends: impl Fn(&Remote) -> bool) -> usize {
    gpu.links.iter().filter(|link| link.up && ends(&link.remote)).count()
}

/// Two GPUs that have joined fabrics and are not in one clique.
fn apart(a: &Fabric, b: &Fabric) -> bool {
    a.is_joined() && b.is_joined() && (a.cluster != b.cluster || a.clique != b.clique)
}
