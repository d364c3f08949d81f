//! The library of collectives that groups on this node's devices would load, and what is known to be
//! wrong with its release. It is loaded and asked for its version, and for nothing else.

use std::path::Path;

use crossover_device::driver::Description;
use crossover_nccl_sys::{Library, LoadError, Vendor, Version, advisories};
use crossover_policy::Settings;

use super::finding::Finding;

/// Each vendor's library, the name of its checks, and the driver of the devices that it is for.
const LIBRARIES: [(Vendor, &str, &str); 2] =
    [(Vendor::Nccl, "nccl", "cuda"), (Vendor::Rccl, "rccl", "hip")];

const ADVICE: &str = "nccl.library is the setting that names its file; without one, calls on several \
                      devices that no other backend takes are refused";

pub(super) fn examine(settings: Option<&Settings>) -> Vec<Finding> {
    let named = settings.and_then(|settings| settings.backends.get("nccl.library")).map(Path::new);
    let shown = LIBRARIES.map(|(.., driver)| devices(driver));
    let is_for_none = shown.iter().all(|devices| *devices == 0);
    let of_libraries = LIBRARIES.into_iter().zip(shown).map(|((vendor, check, _), devices)| {
        // A file that is named is that of the vendor whose devices are here.
        let named = named.filter(|file| match is_for_none {
            true => vendor == by_name(file),
            false => devices > 0,
        });
        of_library(check, vendor, named, devices)
    });
    of_libraries.flatten().collect()
}

fn devices(driver: &str) -> usize {
    let devices = crossover_device::driver(driver).and_then(|driver| driver.devices());
    devices.map_or(0, |devices: Vec<Description>| devices.len())
}

/// Whose library a file seems to be.
fn by_name(file: &Path) -> Vendor {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if name.contains("rccl") { Vendor::Rccl } else { Vendor::Nccl }
}

fn of_library(
    check: &'static str,
    vendor: Vendor,
    named: Option<&Path>,
    devices: usize,
) -> Vec<Finding> {
    match Library::load(named, vendor) {
        Ok(library) => of_release(check, vendor, library.version, &library.path),
        Err(why) => vec![absent(check, &why, named, devices)],
    }
}

/// One finding for the library, and one for each of its release's faults.
fn of_release(check: &'static str, vendor: Vendor, version: Version, path: &Path) -> Vec<Finding> {
    let mut findings = vec![Finding::ok(check, format!("{vendor} {version}: {}", path.display()))];
    findings.extend(advisories(vendor, version).map(|advisory| {
        let (note, source, until) = (advisory.note, advisory.source, advisory.until);
        Finding::warn(
            check,
            format!("{vendor} {version}: {note} ({source})"),
            format!("{vendor} {until} does not: use it or a later release"),
        )
    }));
    findings
}

/// Nothing is amiss where there is no use for one.
fn absent(check: &'static str, why: &LoadError, named: Option<&Path>, devices: usize) -> Finding {
    match named {
        Some(file) => {
            let setting = format!("setting nccl.library is `{}`: {why}", file.display());
            Finding::fail(check, setting, None)
        }
        None if devices > 1 => Finding::warn(check, why.to_string(), ADVICE),
        None => Finding::ok(check, why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use crossover_policy::Override;
    use crossover_tests::nccl::stand_in;

    use super::*;
    use crate::doctor::finding::Verdict;

    fn examine_with(library: &str) -> Vec<Finding> {
        let registry = crossover_backends::registry().expect("backends");
        let (key, value) = ("nccl.library".to_owned(), library.to_owned());
        let set = Override { key, value, origin: "a test".to_owned() };
        examine(Some(&Settings::load([], &[set], &registry).expect("a setting")))
    }

    #[test]
    fn a_library_is_told_with_all_that_is_wrong_with_its_release() {
        let told = |version| of_release("nccl", Vendor::Nccl, version, Path::new("/lib/libnccl"));
        let faulty = told(Version::new(2, 25, 1));
        assert_eq!(faulty[0].found, "NCCL 2.25.1: /lib/libnccl");
        assert_eq!((faulty.len(), faulty[1].verdict), (2, Verdict::Warn));
        let found = &faulty[1].found;
        assert!(found.starts_with("NCCL 2.25.1: large reductions of bf16"), "{found}");
        assert!(found.ends_with("(ggml-org/llama.cpp#24489)"), "{found}");
        let advice = faulty[1].advice.as_deref();
        assert_eq!(advice, Some("NCCL 2.27.5 does not: use it or a later release"));
        assert_eq!(told(Version::new(2, 31, 2)).len(), 1);
    }

    #[test]
    fn a_library_that_cannot_be_had_is_amiss_where_it_is_wanted() {
        let why = LoadError::Absent { vendor: Vendor::Nccl, tried: Vec::new() };
        let verdict = |named, devices| absent("nccl", &why, named, devices).verdict;
        assert_eq!(verdict(None, 0), Verdict::Ok);
        assert_eq!(verdict(None, 1), Verdict::Ok);
        assert_eq!(verdict(None, 2), Verdict::Warn);
        assert_eq!(verdict(Some(Path::new("libnccl.so.9")), 0), Verdict::Fail);
    }

    #[test]
    fn the_file_that_a_setting_names_is_asked() {
        let missing = examine_with("/nonexistent/librccl.so");
        let of_rccl = missing.iter().find(|finding| finding.verdict == Verdict::Fail);
        let of_rccl = of_rccl.expect("there is no such file");
        let start = "setting nccl.library is `/nonexistent/librccl.so`: no ";
        assert!(of_rccl.found.starts_with(start), "{}", of_rccl.found);

        let library = match stand_in(&["VERSION=22701"]) {
            Ok(library) => library.display().to_string(),
            Err(why) => return crate::out::note(&format!("skipped: {why}")),
        };
        let found = examine_with(&library);
        let told = |finding: &&Finding| finding.found.contains(" 2.27.1: ");
        let told: Vec<&Finding> = found.iter().filter(told).collect();
        assert!(told[0].found.ends_with(&library), "{}", told[0].found);
        assert_eq!(told[1].verdict, Verdict::Warn);
    }
}
