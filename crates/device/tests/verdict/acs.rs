//! Bridges and IOMMUs, from captured text.

use crossover_device::topology::pci::PciAddress;
use crossover_device::verdict::acs::{Finding, findings};

/// Two root ports, a switch below the second, a GPU below each, and a network card apart.
const LSPCI: &str = "\
00:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge (prog-if 00)
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr-
\tBus: primary=00, secondary=01, subordinate=01, sec-latency=0
\tCapabilities: [2a0 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-

00:03.1 PCI bridge: Intel Corporation Sky Lake-E PCI Express Root Port A
\tBus: primary=00, secondary=40, subordinate=4f, sec-latency=0
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-

00:05.0 PCI bridge: Intel Corporation Sky Lake-E PCI Express Root Port B
\tBus: primary=00, secondary=80, subordinate=81, sec-latency=0
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir+ CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-

01:00.0 3D controller: NVIDIA Corporation AD102GL [RTX 5880 Ada Generation] (rev a1)
\tSubsystem: NVIDIA Corporation Device 18b9

41:00.0 PCI bridge: Broadcom / LSI PEX880xx PCIe Gen 4 Switch
\tBus: primary=41, secondary=42, subordinate=42, sec-latency=0
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir+ UpstreamFwd- EgressCtrl- DirectTrans-

42:00.0 3D controller: NVIDIA Corporation AD102GL [RTX 5880 Ada Generation] (rev a1)
81:00.0 Ethernet controller: Mellanox Technologies MT2892 Family
";

fn address(text: &str) -> PciAddress {
    text.parse().unwrap()
}

#[test]
fn bridges_above_gpus_are_told_with_their_settings() {
    let gpus = ["01:00.0", "42:00.0"].map(address);
    let found = findings(LSPCI, "quiet", "off", &gpus);
    let expected = [
        Finding::Redirect {
            bridge: address("00:01.1"),
            settings: vec!["ReqRedir+", "CmpltRedir+"],
        },
        Finding::SourceChecked { bridge: address("00:03.1") },
        Finding::Redirect { bridge: address("41:00.0"), settings: vec!["CmpltRedir+"] },
    ];
    assert_eq!(found, expected);
    let names: Vec<&str> = found.iter().map(Finding::name).collect();
    assert_eq!(names, ["acs_redirect", "acs_source", "acs_redirect"]);
}

#[test]
fn bridges_elsewhere_are_nobodys_business() {
    assert_eq!(findings(LSPCI, "", "off", &[]), []);
    assert_eq!(findings(LSPCI, "", "off", &[address("0001:01:00.0")]), []);
    // What a bridge can do is not what it does.
    let able = LSPCI.lines().filter(|line| !line.contains("ACSCtl")).collect::<Vec<_>>();
    assert_eq!(findings(&able.join("\n"), "", "off", &[address("01:00.0")]), []);
}

#[test]
fn an_iommu_that_translates_is_told() {
    let translated = |cmdline, iommu| {
        let found = findings("", cmdline, iommu, &[]);
        found.iter().map(|finding| (finding.name(), format!("{finding:?}"))).collect::<Vec<_>>()
    };
    assert!(translated("", "off").is_empty());
    assert!(translated("intel_iommu=on", "identity").is_empty());
    assert!(translated("intel_iommu=on iommu=pt", "off").is_empty());
    assert!(translated("amd_iommu=on iommu.passthrough=1", "off").is_empty());
    let by_option = translated("ro intel_iommu=on", "off");
    assert!(by_option[0].1.contains("intel_iommu=on"), "{by_option:?}");
    let by_group = translated("iommu=pt", "DMA-FQ+identity");
    assert_eq!(by_group[0].0, "acs_redirect");
    assert!(by_group[0].1.contains("DMA-FQ+identity"), "{by_group:?}");
}

#[test]
fn text_that_is_no_listing_has_no_findings() {
    for text in ["", "\n\n", "no such command", "\tACSCtl:\tReqRedir+", "zz:00.0 x\n\tBus: a=1"] {
        assert_eq!(findings(text, "", "off", &[address("01:00.0")]), []);
    }
}
