//! Groups whose GPUs are in several nodes.

use super::{Finding, Reach};
use crate::topology::fabric::{Member, common};

/// How the GPUs of `members`, one a rank, on `nodes` nodes, reach one another: all over one NVLink
/// fabric, or not at all. That a group has two ranks, or one GPU a node, changes nothing.
pub fn across(nodes: usize, members: &[Member]) -> Finding {
    match common(members) {
        Ok(found) => Finding {
            reach: Reach::Mnnvl,
            why: format!(
                "spans {nodes} nodes in clique {} of NVLink cluster {}",
                found.clique, found.cluster
            ),
        },
        Err(none) => {
            Finding { reach: Reach::MultiNode, why: format!("spans {nodes} nodes: {none}") }
        }
    }
}
