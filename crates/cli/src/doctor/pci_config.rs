//! Bridges and what they do with peers' traffic, from the configuration space that the kernel shows
//! in files, in the words of `lspci -vvv`: one judge reads both.
//!
//! Sources: PCI Local Bus Specification 3.0, 6.1 (header); PCI-to-PCI Bridge Architecture 1.2, 3.2
//! (buses); PCI Express Base Specification 5.0, 7.6 (extended capabilities), 7.7.8 (ACS).

use std::fmt::Write as _;

use super::root::Root;

const DEVICES: &str = "sys/bus/pci/devices";
/// Where a header says what it is; the highest bit is about more functions.
const HEADER_TYPE: usize = 0x0e;
const BRIDGE: u8 = 1;
/// Primary, secondary and subordinate bus.
const BUSES: usize = 0x18;
/// The header's bytes, which are all that is shown to who is not root.
const HEADER: usize = 64;
/// Where extended capabilities begin.
const EXTENDED: usize = 0x100;
/// The number of the capability that is Access Control Services, and its control word behind it.
const ACS: u32 = 0x000d;
const CONTROL: usize = 6;
/// The control word's bits, lowest first, by lspci's names.
const SETTINGS: [&str; 7] =
    ["SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"];

/// The machine's bridges; `None` if the files do not show this process what bridges are set to.
pub(super) fn listing(root: &Root) -> Option<String> {
    let mut listing = String::new();
    let mut devices = 0;
    for address in root.names(DEVICES) {
        let Some(space) = root.bytes(&format!("{DEVICES}/{address}/config")) else { continue };
        devices += 1;
        if space.get(HEADER_TYPE).is_none_or(|kind| kind & 0x7f != BRIDGE) {
            continue;
        }
        let buses = space.get(BUSES..BUSES + 3)?;
        // A bridge of the older bus has 256 bytes, and no such services.
        if space.len() <= HEADER {
            return None;
        }
        let (primary, secondary, subordinate) = (buses[0], buses[1], buses[2]);
        let _ = writeln!(
            listing,
            "{address} PCI bridge\n\tBus: primary={primary:02x}, secondary={secondary:02x}, \
             subordinate={subordinate:02x}"
        );
        if let Some(control) = control(&space) {
            let words = SETTINGS.iter().enumerate().map(|(bit, name)| {
                let sign = if control & (1 << bit) != 0 { '+' } else { '-' };
                format!("{name}{sign}")
            });
            let _ = writeln!(listing, "\t\tACSCtl:\t{}", words.collect::<Vec<_>>().join(" "));
        }
    }
    (devices > 0).then_some(listing)
}

/// The control word of Access Control Services, if the device has them.
fn control(space: &[u8]) -> Option<u16> {
    let word = |at: usize| {
        let bytes = space.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let mut at = EXTENDED;
    // A list that runs in a circle is longer than there is room for headers.
    for _ in 0..space.len() / 4 {
        // The number in the low half, where the next one is in the highest 12 bits.
        let header = word(at)?;
        if header & 0xffff == ACS {
            let bytes = space.get(at + CONTROL..at + CONTROL + 2)?;
            return Some(u16::from_le_bytes(bytes.try_into().ok()?));
        }
        at = (header >> 20) as usize;
        if at < EXTENDED {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crossover_device::verdict::acs::{self, Finding};

    use super::*;
    use crate::doctor::root::written::root;

    /// A bridge's space: two extended capabilities, the second of them the services.
    fn bridge(buses: [u8; 3], control: u16) -> Vec<u8> {
        let mut space = vec![0; 4096]; // size: a function's whole space
        space[HEADER_TYPE] = 0x81;
        space[BUSES..BUSES + 3].copy_from_slice(&buses);
        space[0x100..0x104].copy_from_slice(&(0x0001_u32 | 1 << 16 | 0x148 << 20).to_le_bytes());
        space[0x148..0x14c].copy_from_slice(&(ACS | 1 << 16).to_le_bytes());
        space[0x14e..0x150].copy_from_slice(&control.to_le_bytes());
        space
    }

    fn listed(devices: &[(&str, &[u8])]) -> Option<String> {
        let (folder, root) = root(&[]);
        for (address, space) in devices {
            let device = folder.path().join(DEVICES).join(address);
            std::fs::create_dir_all(&device).expect("made");
            std::fs::write(device.join("config"), space).expect("written");
        }
        listing(&root)
    }

    #[test]
    fn the_judge_of_lspcis_words_reads_them() {
        let gpu = vec![0; 4096]; // size: a function's whole space
        let redirecting = bridge([0x15, 0x16, 0x18], 0b001_1101);
        let harmless = bridge([0x64, 0x65, 0x65], 0b000_0001);
        let text = listed(&[
            ("0000:15:01.0", &redirecting),
            ("0000:64:01.0", &harmless),
            ("0000:18:00.0", &gpu),
        ]);
        let text = text.expect("all is seen");
        let want = "0000:15:01.0 PCI bridge\n\tBus: primary=15, secondary=16, subordinate=18\n\t\t\
                    ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- \
                    DirectTrans-\n";
        assert!(text.starts_with(want), "{text}");
        let at = |address: &str| address.parse().expect("an address");
        let found = acs::findings(&text, "", "off", &[at("0000:18:00.0"), at("0000:65:00.0")]);
        let settings = vec!["ReqRedir+", "CmpltRedir+"];
        let want = [
            Finding::Redirect { bridge: at("0000:15:01.0"), settings },
            Finding::SourceChecked { bridge: at("0000:64:01.0") },
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn who_sees_only_headers_knows_nothing() {
        let space = bridge([0, 1, 1], 0);
        assert_eq!(listed(&[("0000:00:01.0", &space[..64])]), None);
        let of_the_older_bus = listed(&[("0000:00:01.0", &space[..256])]).expect("all is seen");
        assert!(!of_the_older_bus.contains("ACSCtl"), "{of_the_older_bus}");
        assert_eq!(listed(&[]), None);
        // Guests often see no bridge at all: that is an answer.
        assert_eq!(listed(&[("0000:00:06.0", &[0; 64])]).as_deref(), Some(""));
    }

    #[test]
    fn a_list_without_the_services_ends() {
        let mut space = bridge([0, 1, 1], 0b100);
        space[0x100..0x104].copy_from_slice(&0x0001_u32.to_le_bytes());
        assert_eq!(control(&space), None);
        // In a circle.
        space[0x100..0x104].copy_from_slice(&(0x0001_u32 | 0x100 << 20).to_le_bytes());
        assert_eq!(control(&space), None);
        space[0x100..0x104].copy_from_slice(&(0x0001_u32 | 0xffc << 20).to_le_bytes());
        assert_eq!(control(&space), None);
    }
}
