//! XGMI between the GPUs of a group.

use super::{Finding, Reach, distinct, one_device, pairs};
use crate::error::DeviceError;
use crate::topology::kfd::{AmdFacts, LinkKind, Node};

/// How the devices of `group`, one UUID a rank as [`Node::uuid`] writes it, reach one another.
///
/// # Errors
/// [`DeviceError::Invalid`] if the facts know no such device, or the group is of nobody.
pub fn amd(facts: &AmdFacts, group: &[String]) -> Result<Finding, DeviceError> {
    let devices = distinct(group);
    for uuid in &devices {
        if facts.gpu(uuid).is_none() {
            let known: Vec<String> = facts.gpus().map(Node::uuid).collect();
            return Err(DeviceError::Invalid(format!(
                "the kernel knows no device {uuid} on this machine; it has {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        }
    }
    match devices.as_slice() {
        [] => Err(DeviceError::Invalid("a group without devices has no topology".to_owned())),
        [one] => Ok(one_device(one, group.len())),
        _ => {
            let missing = pairs(&devices).into_iter().find_map(|(a, b)| missing(facts, a, b));
            Ok(match missing {
                None => Finding {
                    reach: Reach::XgmiFull,
                    why: "XGMI between every pair, in one hop".to_owned(),
                },
                Some(why) => Finding { reach: Reach::Pcie, why },
            })
        }
    }
}

/// Why two devices are not joined in one hop, in both directions.
fn missing(facts: &AmdFacts, a: &str, b: &str) -> Option<String> {
    for (from, to) in [(a, b), (b, a)] {
        let (node, peer) = (facts.gpu(from)?, facts.gpu(to)?);
        let Some(link) = node.link_to(peer.number) else {
            return Some(format!("no link from {from} to {to}"));
        };
        if link.kind != LinkKind::Xgmi {
            return Some(format!("no XGMI from {from} to {to}: their link is {}", link.kind));
        }
        if !link.enabled {
            return Some(format!("the XGMI link from {from} to {to} is disabled"));
        }
        if link.hops() != 1 {
            return Some(format!("XGMI from {from} to {to} takes {} hops", link.hops()));
        }
    }
    None
}
