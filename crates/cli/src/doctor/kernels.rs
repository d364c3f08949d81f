//! Which architectures there are kernels for, and whether they are this program's.

use std::path::{Path, PathBuf};

use crossover_device::driver::{Description, Vendor};
use crossover_device::error::DeviceError;
use crossover_device::images::{Images, Places};
use crossover_policy::Settings;

use super::finding::Finding;

const CHECK: &str = "kernels";
/// Every architecture that kernels are compiled for. A test holds this to what compiles them.
const KNOWN: [(Vendor, &str); 6] = [
    (Vendor::Cuda, "sm80"),
    (Vendor::Cuda, "sm90"),
    (Vendor::Cuda, "sm100"),
    (Vendor::Hip, "gfx90a"),
    (Vendor::Hip, "gfx942"),
    (Vendor::Hip, "gfx950"),
];

/// The folder that an operator names.
pub(super) fn named(settings: Option<&Settings>) -> Option<PathBuf> {
    settings?.backends.get("ipc.kernels").map(PathBuf::from)
}

/// `devices` are those of each vendor.
pub(super) fn examine(named: Option<&Path>, devices: &[(Vendor, &[Description])]) -> Vec<Finding> {
    let places = Places::new(named);
    let mut findings: Vec<Finding> = named.and_then(of_named).into_iter().collect();
    let mut wanted: Vec<(Vendor, &str)> = Vec::new();
    for (vendor, devices) in devices {
        for device in *devices {
            let arch = (*vendor, device.arch.as_str());
            if !wanted.contains(&arch) {
                wanted.push(arch);
            }
        }
    }
    findings.extend(wanted.iter().map(|(vendor, arch)| of_device(&places, *vendor, arch)));
    findings.push(others(&places));
    findings
}

/// Images, or why a device of their architecture has none that serve.
pub(super) enum State {
    Built(Images),
    /// Those of another version of this program.
    Stale(Images),
    /// There are none: where they were looked for, and the command that builds them.
    Missing {
        looked: String,
        command: String,
    },
    Broken(DeviceError),
}

pub(super) fn state(places: &Places, vendor: Vendor, arch: &str) -> State {
    match places.images(vendor, arch) {
        Ok(images) if images.abi() == crossover_kernel_abi::digest() => State::Built(images),
        Ok(images) => State::Stale(images),
        Err(DeviceError::NoImage { looked, command, .. }) => State::Missing { looked, command },
        Err(e) => State::Broken(e),
    }
}

/// A folder that is none is seen where there is no device to look for in it.
fn of_named(folder: &Path) -> Option<Finding> {
    let why = match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => return None,
        Ok(_) => "it is no folder".to_owned(),
        Err(e) => e.to_string(),
    };
    Some(Finding::fail(
        CHECK,
        format!("setting ipc.kernels is `{}`: {why}", folder.display()),
        Some("name the folder that holds one of kernels for each architecture, or unset it"),
    ))
}

fn of_device(places: &Places, vendor: Vendor, arch: &str) -> Finding {
    let again = "build them again with `cargo xtask kernels`";
    match state(places, vendor, arch) {
        State::Built(images) => {
            let (folder, built) = (images.folder().display(), images.arch());
            let kernels = images.kernels().count();
            Finding::ok(CHECK, format!("for {arch}: {kernels} in {folder}, built for {built}"))
        }
        State::Stale(images) => {
            let folder = images.folder().display();
            let found = format!("those for {arch} in {folder} are of another version than this");
            Finding::warn(CHECK, found, again)
        }
        State::Missing { looked, command } => Finding::warn(
            CHECK,
            format!("none for {arch}: looked for {looked}"),
            format!("build them with `{command}`"),
        ),
        State::Broken(e) => Finding::fail(CHECK, e.to_string(), None),
    }
}

/// All known architectures, whether or not there is a device of one here.
fn others(places: &Places) -> Finding {
    let (mut built, mut stale, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let mut commands: Vec<(Vendor, Vec<&str>)> = Vec::new();
    for (vendor, arch) in KNOWN {
        match state(places, vendor, arch) {
            State::Built(_) => {
                built.push(arch);
                continue;
            }
            State::Missing { .. } => missing.push(arch),
            State::Stale(_) | State::Broken(_) => stale.push(arch),
        }
        match commands.iter_mut().find(|(known, _)| *known == vendor) {
            Some((_, archs)) => archs.push(arch),
            None => commands.push((vendor, vec![arch])),
        }
    }
    let list = |what: &str, archs: &[&str]| {
        (!archs.is_empty()).then(|| format!("{what} {}", archs.join(" ")))
    };
    let words =
        [list("built:", &built), list("to be built again:", &stale), list("not built:", &missing)];
    let found = words.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let command = |(vendor, archs): &(Vendor, Vec<&str>)| {
        let platform = if *vendor == Vendor::Hip { "hip" } else { "cuda" };
        format!("`cargo xtask kernels {platform} --arch {}`", archs.join(","))
    };
    match commands.is_empty() {
        true => Finding::ok(CHECK, found),
        false => {
            let commands: Vec<String> = commands.iter().map(command).collect();
            Finding::hint(CHECK, found, format!("for those: {}", commands.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    /// A folder of kernels with a manifest of each of these.
    fn folder(archs: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (arch, abi) in archs {
            let manifest = format!(
                r#"{{"arch": "{arch}", "abi": "{abi}", "files":
                    [{{"file": "a.fatbin", "kernels": [{{"name": "one"}}, {{"name": "two"}}]}}]}}"#
            );
            std::fs::create_dir(root.path().join(arch)).expect("made");
            std::fs::write(root.path().join(arch).join("manifest.json"), manifest)
                .expect("written");
        }
        root
    }

    fn device(arch: &str) -> Description {
        Description {
            ordinal: 0,
            name: "a GPU".to_owned(),
            arch: arch.to_owned(),
            uuid: "GPU-0".to_owned(),
            pci: "0000:01:00.0".to_owned(),
            multiprocessors: 132,
            l2: 0,
            memory: 0,
        }
    }

    #[test]
    fn a_folder_of_kernels_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(of_named(folder.path()).is_none());
        let told = of_named(&folder.path().join("nope")).expect("not there").found;
        assert!(told.ends_with("/nope`: No such file or directory (os error 2)"), "{told}");
    }

    #[test]
    fn each_architecture_is_built_or_not_and_the_command_is_told() {
        let abi = crossover_kernel_abi::digest();
        let root = folder(&[("sm80", &abi), ("sm90", "00ff"), ("gfx942", &abi)]);
        let devices = [device("sm86"), device("sm86"), device("sm90"), device("sm100")];
        let told = examine(Some(root.path()), &[(Vendor::Cuda, &devices)]);
        let verdicts: Vec<Verdict> = told.iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [Verdict::Ok, Verdict::Warn, Verdict::Warn, Verdict::Ok]);
        assert!(told[0].found.starts_with("for sm86: 2 in "), "{}", told[0].found);
        assert!(told[1].found.ends_with("of another version than this"), "{}", told[1].found);
        let command = "build them with `cargo xtask kernels cuda --arch sm100`";
        assert_eq!(told[2].advice.as_deref(), Some(command));
        let want = "built: sm80 gfx942; to be built again: sm90; not built: sm100 gfx90a gfx950";
        assert_eq!(told[3].found, want);
        let commands = "for those: `cargo xtask kernels cuda --arch sm90,sm100`, `cargo xtask \
                        kernels hip --arch gfx90a,gfx950`";
        assert_eq!(told[3].advice.as_deref(), Some(commands));
    }

    #[test]
    fn the_architectures_are_those_that_kernels_are_compiled_for() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/src/kernels/arch.rs");
        let text = std::fs::read_to_string(file).expect("it is in the checkout");
        let compiled: Vec<(Vendor, &str)> = text
            .lines()
            .filter_map(|line| {
                let (_, rest) = line.split_once("Arch { name: \"")?;
                let (arch, rest) = rest.split_once('"')?;
                let vendor = match rest {
                    rest if rest.contains("Platform::Cuda") => Vendor::Cuda,
                    rest if rest.contains("Platform::Hip") => Vendor::Hip,
                    _ => return None,
                };
                Some((vendor, arch))
            })
            .collect();
        assert_eq!(compiled, KNOWN);
    }
}
