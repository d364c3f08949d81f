//! The GPUs that drivers show this process, and the kernels for them.

use std::path::Path;

use crossover_device::driver::{Description, Driver};
use crossover_device::error::DeviceError;
use crossover_device::images::Places;
use crossover_policy::Settings;

use super::finding::{Finding, mebibytes};

/// A vendor's driver by its name, and the kernel's node that is there where its GPUs are.
const VENDORS: [(&str, &str); 2] = [("cuda", "/dev/nvidiactl"), ("hip", "/dev/kfd")];

pub(super) fn examine(settings: Option<&Settings>) -> Vec<Finding> {
    let named = settings.and_then(kernels_named);
    let of_vendors = VENDORS.iter().flat_map(|(name, node)| of_vendor(name, node, named));
    named.and_then(of_named).into_iter().chain(of_vendors).collect()
}

/// The folder that an operator names.
fn kernels_named(settings: &Settings) -> Option<&Path> {
    settings.backends.get("ipc.kernels").map(Path::new)
}

/// A folder that is none is seen where there is no device to look for in it.
fn of_named(folder: &Path) -> Option<Finding> {
    let why = match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => return None,
        Ok(_) => "it is no folder".to_owned(),
        Err(e) => e.to_string(),
    };
    Some(Finding::fail(
        "kernels",
        format!("setting ipc.kernels is `{}`: {why}", folder.display()),
        Some("name the folder that holds one of kernels for each architecture, or unset it"),
    ))
}

fn of_vendor(name: &'static str, node: &str, named: Option<&Path>) -> Vec<Finding> {
    let asked = crossover_device::driver(name).and_then(|driver| {
        let (version, devices) = (driver.version()?, driver.devices()?);
        Ok((driver, version, devices))
    });
    match asked {
        Ok((_, version, devices)) if devices.is_empty() => {
            vec![Finding::ok(name, format!("driver {version}, which shows this process no device"))]
        }
        Ok((driver, version, devices)) => {
            let mut findings = vec![Finding::ok(name, format!("driver {version}"))];
            findings.extend(devices.iter().map(|device| Finding::ok(name, in_words(device))));
            findings.extend(kernels(name, &*driver, &devices, named));
            findings
        }
        Err(e) if Path::new(node).exists() => vec![Finding::warn(
            name,
            format!("there is {node}, but no driver: {e}"),
            "install the driver's library, or start the container with it",
        )],
        Err(e) => vec![Finding::ok(name, e.to_string())],
    }
}

fn in_words(device: &Description) -> String {
    let Description { ordinal, name, arch, uuid, pci, multiprocessors, .. } = device;
    let [memory, l2] = [device.memory, device.l2].map(mebibytes);
    format!(
        "{ordinal}: {name}, {arch}, {uuid}, {pci}, {multiprocessors} multiprocessors, {memory}, \
         L2 {l2}"
    )
}

/// One finding for each architecture.
fn kernels(
    name: &'static str,
    driver: &dyn Driver,
    devices: &[Description],
    named: Option<&Path>,
) -> Vec<Finding> {
    let mut archs: Vec<&str> = devices.iter().map(|device| device.arch.as_str()).collect();
    archs.sort_unstable();
    archs.dedup();
    let places = Places::new(named);
    let examine = |arch: &str| match places.images(driver.vendor(), arch) {
        Ok(images) => {
            let folder = images.folder().display();
            Finding::ok(
                name,
                format!("kernels for {arch} in {folder}, built for {}", images.arch()),
            )
        }
        Err(DeviceError::NoImage { looked, command, .. }) => Finding::warn(
            name,
            format!("no kernels for {arch}: looked for {looked}"),
            format!("build them with `{command}`"),
        ),
        Err(e) => Finding::fail(name, e.to_string(), None),
    };
    archs.into_iter().map(examine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_kernels_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(of_named(folder.path()).is_none());
        let told = of_named(&folder.path().join("nope")).expect("not there").found;
        assert!(told.ends_with("/nope`: No such file or directory (os error 2)"), "{told}");
    }
}
