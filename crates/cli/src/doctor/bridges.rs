//! What stands between GPUs and their peers on PCI Express: bridges that send traffic up to the root,
//! and an IOMMU that translates it.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crossover_device::topology::pci::PciAddress;
use crossover_device::verdict::acs::{self, Finding as Cause};
use crossover_device::verdict::platform::Platform;

use super::finding::Finding;
use super::pci_config;
use super::root::Root;

const CHECK: &str = "bridges";
/// Listing a machine's bridges takes a part of a second.
const LISTING: Duration = Duration::from_secs(10);

pub(super) fn examine(root: &Root, platform: &Platform, gpus: &[PciAddress]) -> Vec<Finding> {
    let mut findings = vec![iommu(root, platform)];
    if gpus.is_empty() {
        return findings;
    }
    let cmdline = root.text("proc/cmdline").unwrap_or_default();
    // What lspci prints is in files that root can read, and lspci is seldom in a container.
    let listing = pci_config::listing(root).map_or_else(listing, Ok);
    findings.extend(of_bridges(listing, &cmdline, &platform.iommu, gpus));
    findings
}

/// Whether there is one, and what it does.
fn iommu(root: &Root, platform: &Platform) -> Finding {
    let units = root.names("sys/class/iommu");
    let cmdline = root.text("proc/cmdline").unwrap_or_default();
    let is_option = |word: &&str| word.contains("iommu");
    let options: Vec<&str> = cmdline.split_whitespace().filter(is_option).collect();
    let units = match units.as_slice() {
        [] => "none to see".to_owned(),
        units => format!("{} ({})", units.len(), units[0]),
    };
    let groups = match platform.iommu.as_str() {
        "off" => "no groups".to_owned(),
        kinds => format!("groups of type {kinds}"),
    };
    let options = match options.as_slice() {
        [] => String::new(),
        options => format!(", kernel options {}", options.join(" ")),
    };
    Finding::ok("iommu", format!("{units}, {groups}{options}"))
}

/// What `lspci` says of all devices, or why it says nothing.
fn listing() -> Result<String, String> {
    let (tell, told) = mpsc::channel();
    let list = move || {
        let mut command = Command::new("lspci");
        let output = command.arg("-vvv").stdin(Stdio::null()).stderr(Stdio::null()).output();
        // After the deadline nobody listens.
        let _ = tell.send(output);
    };
    // A thread that is stuck ends with the program.
    std::thread::Builder::new().spawn(list).map_err(|e| e.to_string())?;
    match told.recv_timeout(LISTING) {
        Ok(Ok(output)) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Err(e)) => Err(format!("lspci does not start: {e}")),
        Err(_) => Err(format!("lspci has not ended in {LISTING:?}")),
    }
}

/// Causes, not verdicts: a machine may well work with them.
fn of_bridges(
    listing: Result<String, String>,
    cmdline: &str,
    iommu: &str,
    gpus: &[PciAddress],
) -> Vec<Finding> {
    let unseen = |why: &str| {
        Finding::hint(
            CHECK,
            format!("what bridges above GPUs do is not known: {why}"),
            "run this as root, where the machine's devices are seen (not in a container)",
        )
    };
    let (listing, mut findings) = match listing {
        Ok(text) if !text.contains("ACSCtl:") && text.contains("access denied") => {
            (text, vec![unseen("lspci shows their settings to root alone")])
        }
        Ok(text) => (text, Vec::new()),
        Err(why) => (String::new(), vec![unseen(&why)]),
    };
    let is_known = findings.is_empty();
    findings.extend(acs::findings(&listing, cmdline, iommu, gpus).into_iter().map(of_cause));
    if findings.is_empty() && is_known {
        findings.push(Finding::ok(CHECK, "none above a GPU sends peers' traffic up to the root"));
    }
    findings
}

fn of_cause(cause: Cause) -> Finding {
    let name = cause.name();
    match cause {
        Cause::Redirect { bridge, settings } => Finding::warn(
            name,
            format!("bridge {bridge} sends peers' traffic up to the root: {}", settings.join(" ")),
            "if peers are slow or broken, switch ACS off for it (firmware, or setpci)",
        ),
        Cause::SourceChecked { bridge } => {
            Finding::ok(name, format!("bridge {bridge} checks senders, which hinders no peer"))
        }
        Cause::Translated { by } => Finding::warn(
            name,
            format!("the IOMMU translates what devices send: {by}"),
            "if peers are slow or broken, start the kernel with iommu=pt, or without an IOMMU",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict as Judged;
    use crate::doctor::root::written::root;

    fn texts(findings: &[Finding]) -> Vec<(&str, Judged, &str)> {
        let text = |finding: &Finding| (finding.check, finding.verdict);
        let told = findings.iter().map(|f| (text(f).0, text(f).1, f.found.as_str()));
        told.collect()
    }

    fn gpus(addresses: &[&str]) -> Vec<PciAddress> {
        addresses.iter().map(|text| text.parse().expect("an address")).collect()
    }

    /// Two root ports; below the first a switch with two GPUs, below the second a network card.
    const TREE: &str = include_str!("lspci.txt");

    #[test]
    fn bridges_above_gpus_alone_are_judged() {
        let gpus = gpus(&["0000:17:00.0", "0000:18:00.0"]);
        let told = of_bridges(Ok(TREE.to_owned()), "quiet", "off", &gpus);
        let redirects =
            "bridge 0000:16:01.0 sends peers' traffic up to the root: ReqRedir+ CmpltRedir+";
        let checks = "bridge 0000:16:00.0 checks senders, which hinders no peer";
        let want = [("acs_source", Judged::Ok, checks), ("acs_redirect", Judged::Warn, redirects)];
        assert_eq!(texts(&told), want);
        let other = of_bridges(Ok(TREE.to_owned()), "quiet", "off", &gpus[..0]);
        assert_eq!(other[0].found, "none above a GPU sends peers' traffic up to the root");
    }

    #[test]
    fn an_iommu_that_translates_is_a_cause() {
        let gpus = gpus(&["0000:65:00.0"]);
        let of = |cmdline: &str, iommu: &str| {
            let told = of_bridges(Ok(TREE.to_owned()), cmdline, iommu, &gpus);
            (told[0].check, told[0].verdict, told.len())
        };
        assert_eq!(of("quiet", "DMA-FQ"), ("acs_redirect", Judged::Warn, 1));
        assert_eq!(of("intel_iommu=on", "off"), ("acs_redirect", Judged::Warn, 1));
        for cmdline in ["quiet", "intel_iommu=on iommu=pt"] {
            assert_eq!(of(cmdline, "off"), ("bridges", Judged::Ok, 1));
        }
        assert_eq!(of("intel_iommu=on", "identity"), ("bridges", Judged::Ok, 1));
    }

    #[test]
    fn what_cannot_be_seen_is_no_fault() {
        let hidden = Ok("00:01.0 PCI bridge\n\tCapabilities: <access denied>\n".to_owned());
        for (listing, why) in [(hidden, "root alone"), (Err("no lspci".to_owned()), "no lspci")] {
            let told = of_bridges(listing, "", "off", &gpus(&["0000:01:00.0"]));
            assert!(told[0].found.contains(why), "{}", told[0].found);
            assert_eq!((told[0].verdict, told.len()), (Judged::Ok, 1));
        }
    }

    #[test]
    fn the_iommu_is_told_as_the_kernel_tells_it() {
        let of = |files: &[(&str, &str)]| {
            let (folder, root) = root(files);
            iommu(&root, &Platform::below(folder.path())).found
        };
        assert_eq!(of(&[]), "none to see, no groups");
        let found = of(&[
            ("sys/class/iommu/dmar0", ""),
            ("sys/class/iommu/dmar1", ""),
            ("sys/kernel/iommu_groups/0/type", "identity\n"),
            ("proc/cmdline", "BOOT_IMAGE=/vmlinuz intel_iommu=on iommu=pt quiet\n"),
        ]);
        let want = "2 (dmar0), groups of type identity, kernel options intel_iommu=on iommu=pt";
        assert_eq!(found, want);
    }
}
