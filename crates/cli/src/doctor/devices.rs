//! The GPUs that drivers show this process, and which of the machine's the environment hides.

use std::path::Path;
use std::sync::Arc;

use crossover_device::driver::{Description, Driver, Vendor};
use crossover_device::topology::visible::{self, Visible};
use crossover_device::topology::{kfd, nvml};

use super::finding::{Finding, mebibytes};

/// A vendor's driver by its name, and the kernel's node that is there where its GPUs are.
const VENDORS: [(&str, &str); 2] = [("cuda", "/dev/nvidiactl"), ("hip", "/dev/kfd")];

type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A vendor that shows this process devices.
pub(super) struct Shown {
    pub(super) name: &'static str,
    pub(super) driver: Arc<dyn Driver>,
    /// The driver's version.
    pub(super) version: String,
    /// One at least.
    pub(super) devices: Vec<Description>,
}

impl Shown {
    /// Whose devices they are.
    pub(super) fn vendor(&self) -> Vendor {
        if self.name == "hip" { Vendor::Hip } else { Vendor::Cuda }
    }

    pub(super) fn uuids(&self) -> Vec<String> {
        self.devices.iter().map(|device| device.uuid.clone()).collect()
    }
}

pub(super) fn examine(variable: &Variables<'_>) -> (Vec<Shown>, Vec<Finding>) {
    let (mut shown, mut findings) = (Vec::new(), Vec::new());
    for (name, node) in VENDORS {
        let asked = crossover_device::driver(name).and_then(|driver| {
            let (version, devices) = (driver.version()?, driver.devices()?);
            Ok(Shown { name, driver, version, devices })
        });
        match asked {
            Ok(vendor) => {
                findings.extend(of_vendor(&vendor));
                shown.extend((!vendor.devices.is_empty()).then_some(vendor));
            }
            Err(e) if Path::new(node).exists() => findings.push(Finding::warn(
                name,
                format!("there is {node}, but no driver: {e}"),
                "install the driver's library, or start the container with it",
            )),
            Err(e) => findings.push(Finding::ok(name, e.to_string())),
        }
    }
    findings.extend(hidden(variable));
    (shown, findings)
}

fn of_vendor(vendor: &Shown) -> Vec<Finding> {
    let Shown { name, version, devices, .. } = vendor;
    let driver = match devices.is_empty() {
        true => format!("driver {version}, which shows this process no device"),
        false => format!("driver {version}"),
    };
    let devices = devices.iter().map(|device| Finding::ok(name, in_words(device)));
    [Finding::ok(name, driver)].into_iter().chain(devices).collect()
}

fn in_words(device: &Description) -> String {
    let Description { ordinal, name, arch, uuid, pci, multiprocessors, .. } = device;
    let [memory, l2] = [device.memory, device.l2].map(mebibytes);
    format!(
        "{ordinal}: {name}, {arch}, {uuid}, {pci}, {multiprocessors} multiprocessors, {memory}, \
         L2 {l2}"
    )
}

/// What the variables make of the machine's GPUs, which no driver takes for a mistake.
fn hidden(variable: &Variables<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Ok(facts) = nvml::read() {
        let list = variable("CUDA_VISIBLE_DEVICES");
        match variable("CUDA_DEVICE_ORDER").unwrap_or_else(|| "FASTEST_FIRST".to_owned()).parse() {
            Ok(order) => {
                let seen = visible::cuda(&facts.gpus, list.as_deref(), order);
                let lists = [("CUDA_VISIBLE_DEVICES", list)];
                findings.extend(seen.and_then(|seen| of_lists(&lists, facts.gpus.len(), &seen)));
            }
            Err(e) => findings.push(Finding::warn("visible", e.to_string(), "write one of these")),
        }
    }
    if let Ok(facts) = kfd::read(kfd::NODES.as_ref()) {
        let all: Vec<String> = facts.gpus().map(kfd::Node::uuid).collect();
        let names = ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];
        let lists = names.map(|name| (name, variable(name)));
        let left = visible::rocr(&all, lists[0].1.as_deref());
        let mut seen = visible::hip(&left.uuids, lists[1].1.as_deref(), lists[2].1.as_deref());
        seen.ended = left.ended.or(seen.ended);
        findings.extend(of_lists(&lists, all.len(), &seen));
    }
    findings
}

fn of_lists(lists: &[(&str, Option<String>)], all: usize, seen: &Visible) -> Option<Finding> {
    let word = |(name, list): &(&str, Option<String>)| Some(format!("{name}={}", list.as_ref()?));
    let words: Vec<String> = lists.iter().filter_map(word).collect();
    if words.is_empty() || all == 0 {
        return None;
    }
    let count = seen.uuids.len();
    let found = format!("{}: {count} of the machine's {all} devices", words.join(", "));
    Some(match (&seen.ended, count) {
        (Some(why), _) => Finding::warn(
            "visible",
            format!("{found}; the list ends early: {why}"),
            "the driver says nothing of this: put the list right",
        ),
        (None, 0) => Finding::warn("visible", found, "unset it, or name devices"),
        (None, _) => Finding::ok("visible", found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    fn four() -> Vec<String> {
        (0..4).map(|number| format!("GPU-000000000000000{number}")).collect()
    }

    #[test]
    fn a_list_that_ends_early_is_told_with_the_reason() {
        let of = |list: Option<&str>| {
            let seen = visible::rocr(&four(), list);
            of_lists(&[("ROCR_VISIBLE_DEVICES", list.map(str::to_owned))], 4, &seen)
        };
        assert!(of(None).is_none());
        let all = of(Some("2,3")).expect("it is set");
        let want = "ROCR_VISIBLE_DEVICES=2,3: 2 of the machine's 4 devices";
        assert_eq!((all.verdict, all.found.as_str()), (Verdict::Ok, want));
        let cut = of(Some("0,7,1")).expect("it is set");
        assert_eq!(cut.verdict, Verdict::Warn);
        let start =
            "ROCR_VISIBLE_DEVICES=0,7,1: 1 of the machine's 4 devices; the list ends early: ";
        assert!(cut.found.starts_with(start), "{}", cut.found);
        assert_eq!(of(Some("")).expect("it is set").verdict, Verdict::Warn);
    }
}
