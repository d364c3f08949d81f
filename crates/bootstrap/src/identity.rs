//! Who and where a rank is.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Where a process runs. Nodes are told apart by the kernel's boot id, never by a hostname:
/// containers of one host have different names, and hosts made from one image the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    host: String,
    pid: u32,
    node: String,
    pid_namespace: String,
}

impl Identity {
    /// This process, as the kernel describes it. `node_id` replaces the boot id, for nodes that
    /// cannot be told apart by it.
    pub fn here(node_id: Option<&str>) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let node = node_id.map_or_else(|| boot_id(&host), str::to_owned);
        let pid_namespace = std::fs::read_link("/proc/self/ns/pid")
            .map(|link| link.to_string_lossy().into_owned())
            .unwrap_or_default();
        Identity { host, pid: std::process::id(), node, pid_namespace }
    }

    /// `host:pid`, for messages.
    pub fn label(&self) -> String {
        format!("{}:{}", self.host, self.pid)
    }

    /// Equal exactly where processes share a kernel.
    pub fn node(&self) -> &str {
        &self.node
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Why `other`'s process is not visible from here under its own pid, if so.
    pub(crate) fn hides(&self, other: &Identity) -> Option<&'static str> {
        if self.node != other.node {
            Some("on another node")
        } else if self.pid_namespace != other.pid_namespace || self.pid_namespace.is_empty() {
            Some("in another pid namespace")
        } else {
            None
        }
    }
}

/// A new number at each boot of a kernel; the same in all its containers. Without /proc, what is
/// left is the hostname, marked as such so that it equals no boot id.
fn boot_id(host: &str) -> String {
    std::fs::read_to_string(Path::new("/proc/sys/kernel/random/boot_id"))
        .map(|id| id.trim().to_owned())
        .unwrap_or_else(|_| format!("host-{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(node: &str, pid_namespace: &str) -> Identity {
        Identity {
            host: "h".into(),
            pid: 7,
            node: node.into(),
            pid_namespace: pid_namespace.into(),
        }
    }

    #[test]
    fn one_node_is_one_boot_id_or_what_was_set() {
        let (a, b) = (Identity::here(None), Identity::here(None));
        assert_eq!(a, b);
        assert_eq!(a.node().len(), "4d2b4188-738e-44e8-ad18-fc7005c79d05".len());
        assert_eq!(Identity::here(Some("rack7")).node(), "rack7");
        assert!(a.label().ends_with(&format!(":{}", std::process::id())));
    }

    #[test]
    fn processes_hide_behind_nodes_and_namespaces() {
        let me = identity("n", "pid:[1]");
        assert_eq!(me.hides(&identity("n", "pid:[1]")), None);
        assert_eq!(me.hides(&identity("m", "pid:[1]")), Some("on another node"));
        assert_eq!(me.hides(&identity("n", "pid:[2]")), Some("in another pid namespace"));
        let blind = identity("n", "");
        assert_eq!(blind.hides(&blind), Some("in another pid namespace"));
    }
}
