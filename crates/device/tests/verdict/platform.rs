//! What of a machine decides.

use std::fs;

use crossover_device::verdict::platform::Platform;

#[test]
fn a_machine_is_read_from_its_kernel() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
    write("proc/sys/kernel/random/boot_id", "8c0b2f2e-7a3c-4f0e-9a38-3f5f4a4c0001\n");
    for (group, kind) in [(0, "DMA-FQ\n"), (1, "identity\n"), (2, "DMA-FQ\n")] {
        write(&format!("sys/kernel/iommu_groups/{group}/type"), kind);
    }
    let platform = Platform::below(root.path());
    assert_eq!(platform.kernel, "6.8.0-45-generic");
    assert_eq!(platform.boot, "8c0b2f2e-7a3c-4f0e-9a38-3f5f4a4c0001");
    assert_eq!(platform.iommu, "DMA-FQ+identity");
    assert_eq!((platform.is_wsl2(), platform.refusal()), (false, None));
}

#[test]
fn nothing_there_is_no_error() {
    let root = tempfile::tempdir().unwrap();
    let platform = Platform::below(root.path());
    assert_eq!((platform.boot.as_str(), platform.iommu.as_str()), ("", "off"));
}

#[test]
fn this_machine_has_a_kernel() {
    let platform = Platform::read();
    assert!(!platform.kernel.is_empty());
    assert_eq!(platform, Platform::read());
}
