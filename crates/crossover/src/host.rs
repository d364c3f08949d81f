//! What a rank without a device reports of itself.

use std::path::Path;

use crossover_bootstrap::Identity;
use crossover_core::facts::{Caps, HOST_ARCH, RankReport, Topology};

/// The report of this process as a rank on host memory. `node_id` replaces the kernel's boot id.
pub fn report(node_id: Option<&str>) -> RankReport {
    let identity = Identity::here(node_id);
    RankReport {
        label: identity.label(),
        node: identity.node().to_owned(),
        arch: HOST_ARCH.to_owned(),
        device: processor(),
        topology: Topology::Host,
        caps: Caps::NONE,
        llc_bytes: last_level_cache(Path::new("/sys/devices/system/cpu/cpu0/cache")),
    }
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned())
}

/// The largest cache of a processor, from the kernel's files; 0 where they are not.
fn last_level_cache(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().filter_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join("size")).ok()?;
        let kibibytes: u64 = text.trim().strip_suffix('K')?.parse().ok()?;
        Some(kibibytes << 10)
    });
    sizes.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_as_the_kernel_writes_them() {
        let folder = std::env::temp_dir().join(format!("crossover-cache-{}", std::process::id()));
        for (index, size) in [("index0", "48K\n"), ("index3", "266240K\n"), ("index2", "odd")] {
            std::fs::create_dir_all(folder.join(index)).expect("a folder");
            std::fs::write(folder.join(index).join("size"), size).expect("a file");
        }
        assert_eq!(last_level_cache(&folder), 266_240 * 1024);
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(last_level_cache(&folder), 0);
    }
}
