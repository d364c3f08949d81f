//! What a rank without a device reports of itself.

use std::path::Path;

use crossover_bootstrap::Identity;
use crossover_core::facts::{Caches, Caps, HOST_ARCH, RankReport, Topology};

/// The report of this process as a rank on host memory. `node_id` replaces the kernel's boot id.
pub fn report(node_id: Option<&str>) -> RankReport {
    let identity = Identity::here(node_id);
    RankReport {
        label: identity.label(),
        node: identity.node().to_owned(),
        arch: HOST_ARCH.to_owned(),
        device: processor(),
        unit: String::new(),
        topology: Topology::Host,
        caps: Caps::NONE,
        caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
    }
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned())
}

/// A processor's caches, from the kernel's files; 0 where they are not. The last level is the largest.
fn caches(folder: &Path) -> Caches {
    let mut caches = Caches::default();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).ok();
        let kibibytes = read("size").and_then(|text| text.trim().strip_suffix('K')?.parse().ok());
        let Some(bytes) = kibibytes.map(|kibibytes: u64| kibibytes << 10) else { continue };
        caches.llc = caches.llc.max(bytes);
        if read("level").is_some_and(|level| level.trim() == "2") {
            caches.l2 = bytes;
        }
    }
    caches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_as_the_kernel_writes_them() {
        let folder = std::env::temp_dir().join(format!("crossover-cache-{}", std::process::id()));
        let all = [("1", "48K\n"), ("2", "2048K\n"), ("3", "266240K\n"), ("4", "odd")];
        for (level, size) in all {
            let index = folder.join(format!("index{level}"));
            std::fs::create_dir_all(&index).expect("a folder");
            std::fs::write(index.join("level"), format!("{level}\n")).expect("a file");
            std::fs::write(index.join("size"), size).expect("a file");
        }
        assert_eq!(caches(&folder), Caches { l2: 2048 * 1024, llc: 266_240 * 1024 });
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(caches(&folder), Caches::default());
    }
}
