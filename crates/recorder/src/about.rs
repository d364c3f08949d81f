//! What does not change while a group lives: which group, which rank of it, which process.

use serde::{Deserialize, Serialize};

/// Written into a ring when it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The job's name, and its attempt.
    pub job: String,
    /// Which attempt to run the job.
    pub attempt: u32,
    /// The group's name in policies, such as `tp`.
    pub tag: String,
    /// A number that no other group has; the same on every rank.
    pub group: u64,
    /// This rank.
    pub rank: u32,
    /// Number of ranks.
    pub world: u32,
    /// Every rank's process as `host:pid`, in rank order.
    pub members: Vec<String>,
    /// Every rank's node, in rank order: equal exactly where ranks share a kernel.
    pub nodes: Vec<String>,
    /// This rank's process.
    pub process: Process,
    /// Where its data is, such as `host` or `cuda:0`.
    pub device: String,
    /// Digest of the policy in force.
    pub policy: String,
    /// Digest of the linked backends.
    pub backends: String,
    /// This program's version.
    pub version: String,
    /// What calls can be served by, such as `host/one_shot`, by number.
    pub targets: Vec<String>,
}

/// A process that can still be told from another that has been given its number since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number, in its own namespace.
    pub pid: u32,
    /// When it started, in the kernel's clock ticks since boot; 0 where `/proc` does not tell.
    pub started: u64,
    /// The kernel's boot id.
    pub boot: String,
    /// Its pid namespace, such as `pid:[4026531836]`; empty where `/proc` does not tell.
    pub pid_namespace: String,
}

#[cfg(test)]
impl About {
    /// A rank of this process, of a group of as many ranks as there are nodes named.
    pub(crate) fn sample(rank: u32, nodes: &[&str]) -> About {
        About {
            job: "j".to_owned(),
            attempt: 0,
            tag: "tp".to_owned(),
            group: 7,
            rank,
            world: nodes.len() as u32,
            members: (0..nodes.len()).map(|nth| format!("h:{nth}")).collect(),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            process: Process::here(),
            device: "host".to_owned(),
            policy: "p".to_owned(),
            backends: "b".to_owned(),
            version: "0".to_owned(),
            targets: Vec::new(),
        }
    }
}
