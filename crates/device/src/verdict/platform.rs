//! What of a machine decides whether peers work, beside the devices themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A machine as it is since its last start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The kernel's release, such as `6.8.0-45-generic`.
    pub kernel: String,
    /// A new one at every start of the machine; empty where the kernel gives none.
    pub boot: String,
    /// How the IOMMU treats devices: the types of its groups, or `off`.
    pub iommu: String,
}

impl Platform {
    /// This machine.
    pub fn read() -> Platform {
        Platform::below(Path::new("/"))
    }

    /// The machine whose `proc` and `sys` are below `root`. What is not there is left out: a
    /// container may lack any of it.
    pub fn below(root: &Path) -> Platform {
        let text = |path: &str| {
            let text = fs::read_to_string(root.join(path)).unwrap_or_default();
            text.trim().to_owned()
        };
        Platform {
            kernel: text("proc/sys/kernel/osrelease"),
            boot: text("proc/sys/kernel/random/boot_id"),
            iommu: iommu(&root.join("sys/kernel/iommu_groups")),
        }
    }

    /// Is this Linux inside of Windows?
    pub fn is_wsl2(&self) -> bool {
        self.kernel.contains("microsoft-standard-WSL2")
    }

    /// Why this platform has no memory shared between processes' devices, if it has none. The
    /// sentence begins with the reason's name.
    pub fn refusal(&self) -> Option<String> {
        self.is_wsl2().then(|| {
            format!("wsl2: CUDA does not share memory between processes there ({})", self.kernel)
        })
    }
}

fn iommu(groups: &Path) -> String {
    let entries = fs::read_dir(groups).into_iter().flatten().flatten();
    let types = entries.filter_map(|group| fs::read_to_string(group.path().join("type")).ok());
    let types: BTreeSet<String> = types.map(|kind| kind.trim().to_owned()).collect();
    match types.is_empty() {
        true => "off".to_owned(),
        false => types.into_iter().collect::<Vec<_>>().join("+"),
    }
}
