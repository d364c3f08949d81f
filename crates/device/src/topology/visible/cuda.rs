//! `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`, as NVIDIA's driver reads them.
//!
//! Sources: the CUDA programming guide (environment variables), the MIG user guide (forms of names
//! and what is enumerated), PyTorch's reading of the list (repeats, prefixes, numbers with a tail).

use std::str::FromStr;

use super::{Visible, by_prefix};
use crate::topology::facts::Gpu;

/// What numbers count by: `CUDA_DEVICE_ORDER`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The fastest GPU first, by the driver's own estimate; the rest as it likes. The default.
    #[default]
    FastestFirst,
    /// Ascending PCI addresses.
    PciBusId,
}

/// `CUDA_DEVICE_ORDER` has a word that the driver does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CUDA_DEVICE_ORDER={0}: write FASTEST_FIRST or PCI_BUS_ID")]
pub struct UnknownOrder(String);

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(word: &str) -> Result<Self, UnknownOrder> {
        match word {
            "FASTEST_FIRST" => Ok(Order::FastestFirst),
            "PCI_BUS_ID" => Ok(Order::PciBusId),
            other => Err(UnknownOrder(other.to_owned())),
        }
    }
}

/// The devices that a process with this `CUDA_VISIBLE_DEVICES` (`None`: not set) sees, of a
/// machine's `gpus`, ascending by PCI address.
///
/// `None` if the order cannot be told: numbers, or no list at all, of unlike GPUs in the order
/// [`Order::FastestFirst`], which only the driver knows. Ask the driver for UUIDs then.
pub fn cuda(gpus: &[Gpu], list: Option<&str>, order: Order) -> Option<Visible> {
    let Some(list) = list else {
        return Some(everything(gpus, order)?.alone());
    };
    let list = list.trim();
    let visible = if list.starts_with("GPU-") {
        named(list, "GPU-", gpus.iter().map(|gpu| gpu.uuid.as_str()).collect(), &gpu_starts)
    } else if list.starts_with("MIG-") {
        let names = parts(gpus);
        let starts = |uuid: &str, entry: &str| part_starts(gpus, uuid, entry);
        named(list, "MIG-", names, &starts)
    } else {
        numbered(list, &everything(gpus, order)?.names())
    };
    Some(Seen { gpus, visible }.alone())
}

/// What could be seen, before the rules of divided GPUs.
struct Seen<'a> {
    gpus: &'a [Gpu],
    visible: Visible,
}

impl Seen<'_> {
    fn names(&self) -> Vec<&str> {
        self.visible.uuids.iter().map(String::as_str).collect()
    }

    /// A process can use one instance, and no whole GPU beside it; a divided GPU stands for its
    /// first instance.
    fn alone(self) -> Visible {
        let Seen { gpus, mut visible } = self;
        let instances = visible.uuids.iter().map(|uuid| first_instance(gpus, uuid));
        let Some(instance) = instances.flatten().next().map(str::to_owned) else {
            let divided = |uuid: &String| gpus.iter().any(|gpu| gpu.mig && gpu.uuid == *uuid);
            visible.uuids.retain(|uuid| !divided(uuid));
            return visible;
        };
        if visible.uuids != [instance.as_str()] {
            let why = format!(
                "a process sees one MIG instance and nothing beside it: {instance} is the first"
            );
            visible.ended.get_or_insert(why);
            visible.uuids = vec![instance];
        }
        visible
    }
}

/// The instance that is, or is the first of, `uuid`.
fn first_instance<'a>(gpus: &'a [Gpu], uuid: &str) -> Option<&'a str> {
    gpus.iter().find_map(|gpu| {
        let mut parts = gpu.instances.iter().map(|part| part.uuid.as_str());
        if gpu.uuid == uuid { parts.next() } else { parts.find(|part| *part == uuid) }
    })
}

fn everything(gpus: &[Gpu], order: Order) -> Option<Seen<'_>> {
    // GPUs that are alike are equally fast: both orders are the same.
    let alike = gpus.windows(2).all(|pair| pair[0].name == pair[1].name);
    let known = alike || order == Order::PciBusId;
    known.then(|| Seen { gpus, visible: Visible::all(gpus.iter().map(|gpu| gpu.uuid.clone())) })
}

fn numbered(list: &str, names: &[&str]) -> Visible {
    let mut chosen: Vec<String> = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let Some(name) = number(entry).and_then(|number| names.get(number)) else {
            return ended(chosen, entry, "names no device of this machine");
        };
        if chosen.iter().any(|uuid| uuid == name) {
            return ended(
                Vec::new(),
                entry,
                "repeats one, and a list that repeats is an empty one",
            );
        }
        chosen.push((*name).to_owned());
    }
    Visible::all(chosen)
}

/// The number that an entry starts with, as `strtol` reads it: `1gpu` is 1. Negative is none.
fn number(entry: &str) -> Option<usize> {
    let entry = entry.strip_prefix('+').unwrap_or(entry);
    let end = entry.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(entry.len());
    entry[..end].parse().ok()
}

fn named(list: &str, kind: &str, names: Vec<&str>, starts: &dyn Fn(&str, &str) -> bool) -> Visible {
    let mut chosen: Vec<String> = Vec::new();
    for entry in list.split(',').map(str::trim) {
        if !entry.starts_with(kind) {
            return ended(
                chosen,
                entry,
                &format!("is not of the kind {kind}… that begins the list"),
            );
        }
        match by_prefix(names.iter().copied(), entry, starts) {
            Err(why) => return ended(chosen, entry, why),
            Ok(at) if chosen.iter().any(|uuid| uuid == names[at]) => {
                let why = "repeats one, and a list that repeats is an empty one";
                return ended(Vec::new(), entry, why);
            }
            Ok(at) => chosen.push(names[at].to_owned()),
        }
    }
    Visible::all(chosen)
}

fn ended(chosen: Vec<String>, entry: &str, why: &str) -> Visible {
    // An empty list is how one hides every device: nothing to remark.
    if chosen.is_empty() && entry.is_empty() {
        return Visible::default();
    }
    Visible::cut(chosen, format!("CUDA_VISIBLE_DEVICES ends at `{entry}`: {why}"))
}

fn gpu_starts(uuid: &str, entry: &str) -> bool {
    uuid.starts_with(entry)
}

fn parts(gpus: &[Gpu]) -> Vec<&str> {
    gpus.iter().flat_map(|gpu| &gpu.instances).map(|part| part.uuid.as_str()).collect()
}

/// Is `entry` the start of an instance's UUID, or its older name `MIG-GPU-…/instance/instance`?
fn part_starts(gpus: &[Gpu], uuid: &str, entry: &str) -> bool {
    if uuid.starts_with(entry) {
        return true;
    }
    let owner = gpus
        .iter()
        .find_map(|gpu| Some((gpu, gpu.instances.iter().find(|part| part.uuid == uuid)?)));
    owner.is_some_and(|(gpu, part)| {
        let older = format!("MIG-{}/{}/{}", gpu.uuid, part.gpu_instance, part.compute_instance);
        older == entry
    })
}
