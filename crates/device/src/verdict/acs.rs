//! Bridges that send peers' traffic up to the root, and IOMMUs that translate it: the usual causes
//! of a broken pair, to be told to who can change them.
//!
//! Causes, not verdicts: a machine may well work with them.

use std::collections::BTreeMap;

use crate::topology::pci::PciAddress;

/// Something that keeps peers from one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A bridge above a GPU redirects peers' requests or completions to the root.
    Redirect {
        /// The bridge.
        bridge: PciAddress,
        /// The settings that do so, such as `ReqRedir+`.
        settings: Vec<&'static str>,
    },
    /// A bridge above a GPU only checks who sends: no hindrance, though guides name it.
    SourceChecked {
        /// The bridge.
        bridge: PciAddress,
    },
    /// The IOMMU translates what devices send.
    Translated {
        /// The types of its groups, or the kernel's option.
        by: String,
    },
}

impl Finding {
    /// The finding's name: `acs_redirect` hinders peers, `acs_source` does not.
    pub fn name(&self) -> &'static str {
        match self {
            Finding::Redirect { .. } | Finding::Translated { .. } => "acs_redirect",
            Finding::SourceChecked { .. } => "acs_source",
        }
    }
}

/// What is found above `gpus`, in the words of `lspci -vvv` (as root: it hides the settings from
/// others), `/proc/cmdline` and [`Platform::iommu`](super::platform::Platform::iommu).
pub fn findings(lspci: &str, cmdline: &str, iommu: &str, gpus: &[PciAddress]) -> Vec<Finding> {
    let bridges = bridges(lspci);
    let mut findings = Vec::new();
    for (address, bridge) in &bridges {
        if !gpus.iter().any(|gpu| bridge.is_above(*address, *gpu)) {
            continue;
        }
        let settings: Vec<&str> =
            ["ReqRedir+", "CmpltRedir+"].into_iter().filter(|word| bridge.has(word)).collect();
        if !settings.is_empty() {
            findings.push(Finding::Redirect { bridge: *address, settings });
        } else if bridge.has("SrcValid+") {
            findings.push(Finding::SourceChecked { bridge: *address });
        }
    }
    findings.extend(translation(cmdline, iommu));
    findings
}

/// What `lspci` says of a bridge.
#[derive(Default)]
struct Bridge<'a> {
    buses: Option<(u8, u8)>,
    control: Option<&'a str>,
}

impl Bridge<'_> {
    fn is_above(&self, address: PciAddress, device: PciAddress) -> bool {
        let below = |(first, last): (u8, u8)| (first..=last).contains(&device.bus);
        address.domain == device.domain && self.buses.is_some_and(below)
    }

    fn has(&self, setting: &str) -> bool {
        self.control.is_some_and(|line| line.split_whitespace().any(|word| word == setting))
    }
}

fn bridges(lspci: &str) -> BTreeMap<PciAddress, Bridge<'_>> {
    let mut devices: BTreeMap<PciAddress, Bridge<'_>> = BTreeMap::new();
    let mut current = None;
    for line in lspci.lines() {
        let detail = line.trim_start();
        if detail.len() == line.len() {
            // A line at the margin begins a device with its address; an empty one ends it.
            current = line.split(' ').next().and_then(|word| word.parse().ok());
        }
        let Some(address) = current else { continue };
        if let Some(buses) = detail.strip_prefix("Bus: ") {
            devices.entry(address).or_default().buses = secondary(buses);
        } else if let Some(control) = detail.strip_prefix("ACSCtl:") {
            devices.entry(address).or_default().control = Some(control);
        }
    }
    devices
}

/// The buses below a bridge: `primary=00, secondary=01, subordinate=03, sec-latency=0`.
fn secondary(buses: &str) -> Option<(u8, u8)> {
    let value = |name: &str| {
        let mut fields = buses.split(',').map(str::trim);
        let digits = fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))?;
        u8::from_str_radix(digits, 16).ok()
    };
    Some((value("secondary")?, value("subordinate")?))
}

fn translation(cmdline: &str, iommu: &str) -> Option<Finding> {
    // The groups' types are what is; the kernel's options are asked where there are none to read.
    if iommu != "off" {
        let translated = iommu.split('+').any(|kind| kind.starts_with("DMA"));
        return translated.then(|| Finding::Translated { by: format!("groups of type {iommu}") });
    }
    let words: Vec<&str> = cmdline.split_whitespace().collect();
    if words.contains(&"iommu=pt") || words.contains(&"iommu.passthrough=1") {
        return None;
    }
    let on = words.into_iter().find(|word| ["intel_iommu=on", "amd_iommu=on"].contains(word))?;
    Some(Finding::Translated { by: format!("the kernel's option {on}") })
}
