//! AMD's GPUs and their links, as the kernel driver publishes them in `sysfs`.
//!
//! No library is needed. What is read is a folder given, so that the facts of any machine can be
//! kept in one.

mod node;
mod properties;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use node::{Link, LinkKind, Node};

use crate::error::DeviceError;

/// Where the kernel has its nodes.
pub const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// The nodes of a machine: its processors and its GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmdFacts {
    /// Ascending by number, which is the order in which AMD's runtimes count GPUs.
    pub nodes: Vec<Node>,
}

impl AmdFacts {
    /// The nodes that are GPUs, or partitions of GPUs.
    pub fn gpus(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_gpu())
    }

    /// The GPU of a UUID as [`Node::uuid`] writes it. A partition's number may be left out, as
    /// AMD's runtime does, where a single partition is there.
    pub fn gpu(&self, uuid: &str) -> Option<&Node> {
        let exact = self.gpus().find(|node| node.uuid() == uuid);
        exact.or_else(|| {
            let mut whole = self.gpus().filter(|node| node.board() == uuid);
            let one = whole.next();
            one.filter(|_| whole.next().is_none())
        })
    }
}

/// Reads the nodes in a folder such as [`NODES`].
///
/// # Errors
/// [`DeviceError::Absent`] if there is no such folder: the kernel has no driver for AMD's GPUs.
/// [`DeviceError::Invalid`], with file and line, if something in it cannot be understood.
pub fn read(folder: &Path) -> Result<AmdFacts, DeviceError> {
    if !folder.is_dir() {
        return Err(DeviceError::Absent(format!(
            "no AMD GPU: {} is not there (the kernel driver amdgpu makes it)",
            folder.display()
        )));
    }
    let mut nodes = Vec::new();
    for (number, path) in numbered(folder)? {
        // A container sees the folders of all nodes and may read those of its own GPUs alone.
        if let Some(node) = node::read(number, &path)? {
            nodes.push(node);
        }
    }
    for at in 0..nodes.len() {
        let board = nodes[at].board();
        let parts = nodes.iter().filter(|node| node.is_gpu() && node.board() == board).count();
        // A container may see a single partition of a board, of a number that tells.
        nodes[at].divided = nodes[at].is_gpu() && (parts > 1 || nodes[at].partition > 0);
    }
    Ok(AmdFacts { nodes })
}

/// The entries of a folder whose names are numbers, ascending; a folder that is not there has none.
fn numbered(folder: &Path) -> Result<Vec<(u32, std::path::PathBuf)>, DeviceError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(folder, &error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(number) = name.and_then(|name| name.parse().ok()) {
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn unreadable(path: &Path, error: &std::io::Error) -> DeviceError {
    DeviceError::Invalid(format!("{} cannot be read: {error}", path.display()))
}
