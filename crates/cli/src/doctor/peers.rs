//! Whether GPUs reach one another: what the platform, wires, drivers and bridges say, and what
//! backends found out and remember.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crossover_device::driver::{Description, Driver};
use crossover_device::error::DeviceError;
use crossover_device::topology::mesh::{self, Reach};
use crossover_device::topology::pci::PciAddress;
use crossover_device::topology::{kfd, nvml};
use crossover_device::verdict::acs::{self, Finding as Cause};
use crossover_device::verdict::cache::Cache;
use crossover_device::verdict::platform::Platform;
use crossover_device::verdict::{Verdict, refused};
use crossover_policy::Settings;

use super::finding::Finding;

const CHECK: &str = "peers";
/// Listing a machine's bridges takes a part of a second.
const LISTING: Duration = Duration::from_secs(10);

pub(super) fn examine(settings: Option<&Settings>) -> Vec<Finding> {
    let platform = Platform::read();
    let cache = settings.and_then(cache);
    let mut findings = Vec::new();
    let mut gpus = Vec::new();
    for name in ["cuda", "hip"] {
        let Ok(driver) = crossover_device::driver(name) else { continue };
        let devices = driver.devices().unwrap_or_default();
        if !devices.is_empty() && findings.is_empty() {
            findings.extend(of_platform(&platform));
        }
        if devices.len() < 2 {
            continue;
        }
        let uuids: Vec<String> = devices.iter().map(|device| device.uuid.clone()).collect();
        findings.extend(match name {
            "cuda" => of_nvml(&uuids),
            _ => of_kfd(&uuids),
        });
        findings.extend(of_driver(&*driver, &devices, &uuids));
        if let (Some(cache), Ok(version)) = (&cache, driver.version()) {
            findings.extend(of_memory(cache, &version, &platform));
        }
        gpus.extend(devices.iter().filter_map(|device| device.pci.parse::<PciAddress>().ok()));
    }
    if !gpus.is_empty() {
        let cmdline = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
        findings.extend(of_bridges(listing(), &cmdline, &platform.iommu, &gpus));
    }
    findings
}

/// Where backend `ipc` remembers.
fn cache(settings: &Settings) -> Option<Cache> {
    match settings.backends.get("ipc.p2p_cache").map(String::as_str) {
        Some("none") => None,
        Some(folder) => Some(Cache::new(folder)),
        None => settings.cache.as_ref().map(Cache::new),
    }
}

fn of_platform(platform: &Platform) -> Option<Finding> {
    let advice = "backend ipc declines here: let another backend serve, or run Linux itself";
    platform.refusal().map(|why| Finding::warn(CHECK, why, advice))
}

fn of_nvml(uuids: &[String]) -> Vec<Finding> {
    let facts = match nvml::read() {
        Ok(facts) => facts,
        Err(e) => return vec![unknown_wires(&e)],
    };
    let mut findings = of_wires(uuids, &|group| mesh::nvidia(&facts, group));
    let among = |pair: &&crossover_device::topology::facts::Pair| {
        uuids.contains(&pair.from) && uuids.contains(&pair.to)
    };
    let refusals = facts.pairs.iter().filter(among).filter_map(|pair| pair.refusal());
    findings.extend(refusals.map(refusal));
    findings
}

fn of_kfd(uuids: &[String]) -> Vec<Finding> {
    match kfd::read(kfd::NODES.as_ref()) {
        Ok(facts) => of_wires(uuids, &|group| mesh::amd(&facts, group)),
        Err(e) => vec![unknown_wires(&e)],
    }
}

fn unknown_wires(error: &DeviceError) -> Finding {
    Finding::ok(CHECK, format!("how GPUs are wired is not known: {error}"))
}

/// What a group of them all would have; and of each pair, where pairs may differ.
fn of_wires(
    uuids: &[String],
    mesh: &dyn Fn(&[String]) -> Result<mesh::Finding, DeviceError>,
) -> Vec<Finding> {
    let all = match mesh(uuids) {
        Ok(all) => all,
        Err(e) => return vec![unknown_wires(&e)],
    };
    let mut findings = vec![Finding::ok(CHECK, all.to_string())];
    if matches!(all.reach, Reach::NvlinkPartial | Reach::Pcie) && uuids.len() > 2 {
        for (at, one) in uuids.iter().enumerate() {
            let pairs = uuids[at + 1..].iter().map(|other| mesh(&[one.clone(), other.clone()]));
            findings.extend(pairs.flatten().map(|pair| Finding::ok(CHECK, pair.to_string())));
        }
    }
    findings
}

fn of_driver(driver: &dyn Driver, devices: &[Description], uuids: &[String]) -> Vec<Finding> {
    let pairs = devices.iter().flat_map(|own| refused(driver, own, uuids).unwrap_or_default());
    pairs.map(|pair| refusal(format!("the driver refuses {pair}"))).collect()
}

fn refusal(why: String) -> Finding {
    let advice = "groups of these devices go without peer access: another backend serves";
    Finding::warn(CHECK, why, advice)
}

/// What is remembered of these devices as they are now.
fn of_memory(cache: &Cache, driver_version: &str, platform: &Platform) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, found) in cache.all() {
        let file = path.display();
        let found = match found {
            Ok(found) if found.key.holds(driver_version, platform) => found,
            Ok(_) => continue,
            Err(why) => {
                findings.push(Finding::warn(CHECK, why, format!("delete {file}")));
                continue;
            }
        };
        let (pairs, day) = (&found.verdicts.pairs, found.day());
        let proven = pairs.iter().filter(|(_, verdict)| *verdict == Verdict::Proven).count();
        let all = pairs.len();
        let text = format!("{proven} of {all} directed pairs proven on {day} ({file})");
        findings.push(Finding::ok(CHECK, text));
        let broken = pairs.iter().filter(|(_, verdict)| *verdict != Verdict::Proven);
        findings.extend(broken.map(|(pair, verdict)| {
            let advice = format!(
                "backend ipc declines groups with both; look for acs_redirect here, and delete \
                 {file} to have them tried again"
            );
            Finding::warn(CHECK, format!("{pair} is {verdict}; found on {day}"), advice)
        }));
    }
    findings
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
    let unseen = |why: &str| Finding::ok(CHECK, format!("bridges above GPUs are not seen: {why}"));
    let (listing, mut findings) = match listing {
        Ok(text) if !text.contains("ACSCtl:") && text.contains("access denied") => {
            (text, vec![unseen("lspci shows their settings to root alone")])
        }
        Ok(text) => (text, Vec::new()),
        Err(why) => (String::new(), vec![unseen(&why)]),
    };
    findings.extend(acs::findings(&listing, cmdline, iommu, gpus).into_iter().map(|cause| {
        let name = cause.name();
        match cause {
            Cause::Redirect { bridge, settings } => Finding::warn(
                name,
                format!(
                    "bridge {bridge} sends peers' traffic up to the root: {}",
                    settings.join(" ")
                ),
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
    }));
    findings
}

#[cfg(test)]
mod tests {
    use crossover_device::verdict::cache::Key;
    use crossover_device::verdict::{Pair, Verdicts};

    use super::*;
    use crate::doctor::finding::Verdict as Judged;

    fn uuids(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("GPU-{number}")).collect()
    }

    fn platform(kernel: &str) -> Platform {
        let (kernel, boot) = (kernel.to_owned(), "a start".to_owned());
        Platform { kernel, boot, iommu: "off".to_owned() }
    }

    fn texts(findings: &[Finding]) -> Vec<(Judged, &str)> {
        findings.iter().map(|finding| (finding.verdict, finding.found.as_str())).collect()
    }

    #[test]
    fn linux_inside_of_windows_is_told() {
        assert!(of_platform(&platform("6.8.0-45-generic")).is_none());
        let finding = of_platform(&platform("5.15-microsoft-standard-WSL2")).expect("it is one");
        assert!(finding.found.starts_with("wsl2: "), "{}", finding.found);
    }

    #[test]
    fn pairs_are_told_where_they_may_differ() {
        let of = |reach| {
            move |group: &[String]| {
                let reach = if group == uuids(2) { Reach::NvlinkFull } else { reach };
                Ok(mesh::Finding { reach, why: group.join("+") })
            }
        };
        let full = of_wires(&uuids(8), &of(Reach::NvlinkFull));
        assert_eq!(full.len(), 1);
        let partial = of_wires(&uuids(3), &of(Reach::NvlinkPartial));
        let told: Vec<&str> = partial.iter().map(|finding| finding.found.as_str()).collect();
        let want = [
            "nvlink_partial: GPU-0+GPU-1+GPU-2",
            "nvlink_full: GPU-0+GPU-1",
            "nvlink_partial: GPU-0+GPU-2",
            "nvlink_partial: GPU-1+GPU-2",
        ];
        assert_eq!(told, want);
        let absent = |_: &[String]| Err(DeviceError::Absent("no library".to_owned()));
        let none = of_wires(&uuids(2), &absent);
        assert_eq!(texts(&none), [(Judged::Ok, "how GPUs are wired is not known: no library")]);
    }

    #[test]
    fn what_is_remembered_is_told_while_it_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path());
        let now = platform("6.8.0-45-generic");
        let key = Key::new(&uuids(2), "580", &now).expect("there is a start");
        let pair = |user: usize, owner: usize| Pair {
            user: format!("GPU-{user}"),
            owner: format!("GPU-{owner}"),
        };
        let broken = Verdict::Broken("writes are lost".to_owned());
        let found = Verdicts::of([(pair(0, 1), Verdict::Proven), (pair(1, 0), broken)]);
        cache.store(&key, &found).expect("written");
        let findings = of_memory(&cache, "580", &now);
        assert_eq!(findings.len(), 2);
        let start = "1 of 2 directed pairs proven on 20";
        assert!(findings[0].found.starts_with(start), "{}", findings[0].found);
        let start = "GPU-1 using memory of GPU-0 is broken: writes are lost; found on 20";
        assert!(findings[1].found.starts_with(start), "{}", findings[1].found);
        let advice = findings[1].advice.as_deref().expect("what to do");
        assert!(advice.contains(&cache.path(&key).display().to_string()), "{advice}");
        assert!(of_memory(&cache, "590", &now).is_empty());
        std::fs::write(cache.path(&key), "{").expect("written");
        assert_eq!(of_memory(&cache, "580", &now)[0].verdict, Judged::Warn);
    }

    #[test]
    fn bridges_are_causes_and_never_failures() {
        let gpus: Vec<PciAddress> = vec!["0000:01:00.0".parse().expect("an address")];
        let listed = |control: &str| {
            Ok(format!(
                "00:01.0 PCI bridge: A Port\n\
                 \tBus: primary=00, secondary=01, subordinate=01, sec-latency=0\n\
                 \t\tACSCtl: {control}\n"
            ))
        };
        let of = |listing, iommu: &str| of_bridges(listing, "", iommu, &gpus);
        let redirects = of(listed("SrcValid+ ReqRedir+ CmpltRedir+"), "off");
        let told = "bridge 0000:00:01.0 sends peers' traffic up to the root: ReqRedir+ CmpltRedir+";
        assert_eq!(texts(&redirects), [(Judged::Warn, told)]);
        assert_eq!(redirects[0].check, "acs_redirect");
        let checks = of(listed("SrcValid+ ReqRedir-"), "off");
        assert_eq!((checks[0].check, checks[0].verdict), ("acs_source", Judged::Ok));
        let translated = of(listed("ReqRedir-"), "DMA-FQ");
        assert_eq!((translated[0].check, translated[0].verdict), ("acs_redirect", Judged::Warn));
        let hidden = Ok("00:01.0 PCI bridge\n\tCapabilities: <access denied>\n".to_owned());
        for (listing, why) in [(hidden, "root alone"), (Err("no lspci".to_owned()), "no lspci")] {
            let told = of(listing, "off");
            assert!(told[0].found.contains(why), "{}", told[0].found);
            assert_eq!(told[0].verdict, Judged::Ok);
        }
        assert!(of(listed("ReqRedir- CmpltRedir-"), "off").is_empty());
    }
}
