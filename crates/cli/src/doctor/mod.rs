//! `crossover doctor`: is this node, with this environment, fit for collectives? Runs on a machine
//! with nothing, and changes nothing.
//!
//! A file a concern: a thin reader, and judges of what it read, which tests feed. What the kernel tells
//! is read below a [`root::Root`]; what vendors tell, `crossover-device` reads.

mod bridges;
mod clocks;
mod containers;
mod control_group;
mod devices;
mod dumps;
mod eligible;
mod finding;
mod gpus;
mod groups;
mod kernels;
mod launcher;
mod limits;
mod machine;
mod misset;
mod nccl;
mod pci_config;
mod peers;
mod recorder;
mod report;
mod root;
mod shared_memory;
mod software;
#[cfg(test)]
mod stub;
mod trial;
mod xid;

use crossover_device::topology::pci::PciAddress;
use crossover_device::verdict::platform::Platform;

use crate::failure::Failure;
use finding::Verdict;
use report::Report;
use root::Root;

/// Check this node and its environment, and say what to do about what is found
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Ends with 1 if a check failed.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let report = examine();
    if args.json {
        report.json()?
    } else {
        report.text()?
    }
    if report.worst() == Verdict::Fail { Err(Failure::silent(1)) } else { Ok(()) }
}

fn examine() -> Report {
    let (root, platform) = (Root::here(), Platform::read());
    let variable = |name: &str| std::env::var(name).ok();
    let (launch, of_launcher) = launcher::examine(&variable);
    let ranks = launch.as_ref().map(crossover_bootstrap::Launch::local_world);
    let allowance = control_group::read(&root);
    let (settings, of_settings) = software::examine();
    let settings = settings.as_ref();
    let mut report = Report::new();

    report.add("machine", machine::examine(&root, &platform, allowance, ranks));
    report.add("machine", clocks::examine(&root));
    report.add("container", containers::examine(&root, &variable));
    report.add("container", allowance.findings(ranks.unwrap_or(1)));
    report.add("container", limits::examine(&root, ranks.unwrap_or(1)));

    let (shown, of_devices) = devices::examine(&variable);
    report.add("devices", of_devices);
    for vendor in &shown {
        report.add("devices", gpus::examine(&root, vendor.name, &vendor.devices));
    }
    report.add("devices", xid::examine());
    let of_vendors: Vec<_> =
        shown.iter().map(|vendor| (vendor.vendor(), vendor.devices.as_slice())).collect();
    report.add("devices", kernels::examine(kernels::named(settings).as_deref(), &of_vendors));

    let pci = shown.iter().flat_map(|vendor| &vendor.devices).map(|device| device.pci.parse());
    let gpus: Vec<PciAddress> = pci.flatten().collect();
    let mut reached = Vec::new();
    for vendor in shown {
        let (of_vendor, found) = peers::examine(&vendor, settings, &platform);
        report.add("peers", found);
        reached.push((vendor, of_vendor));
    }
    report.add("peers", bridges::examine(&root, &platform, &gpus));

    report.add("environment", of_launcher);
    report.add("environment", of_settings);
    report.add("environment", misset::examine(settings));
    report.add("environment", nccl::examine(settings));

    report.add("groups", shared_memory::examine(settings));
    report.add("groups", recorder::examine(settings, ranks));
    report.add("groups", trial::examine(settings));
    let (groups, found) = groups::examine(&reached, settings, &platform, ranks, &variable);
    report.add("groups", found);
    report.topology = reached.into_iter().map(|(_, of_vendor)| of_vendor).collect();
    report.groups = groups;
    report
}
