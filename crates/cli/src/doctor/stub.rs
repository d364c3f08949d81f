//! A machine of NVIDIA's that is not there: devices of the emulated driver, and the management library
//! that `crossover-device` tests with, loaded by a process of its own.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crossover_device::driver::{Description, Driver as _};
use crossover_device::verdict::platform::Platform;
use crossover_kernel_emulation::driver::{Emulated, Options};

use super::devices::Shown;
use super::report::Report;
use super::root::Root;
use super::{gpus, peers};

/// Devices of this architecture, named as the library names them.
pub(super) fn shown(arch: &str, devices: u32) -> Shown {
    let driver = Emulated::new(Options { devices, ..Options::default() });
    let all = driver.devices().expect("it emulates them").into_iter();
    let devices = all.map(|device| Description {
        arch: arch.to_owned(),
        uuid: format!("GPU-{}", device.ordinal),
        ..device
    });
    let devices = devices.collect();
    Shown { name: "cuda", driver, version: "13.0".to_owned(), devices }
}

pub(super) fn platform() -> Platform {
    let (kernel, boot) = ("6.8.0-45-generic".to_owned(), "a start".to_owned());
    Platform { kernel, boot, iommu: "off".to_owned() }
}

/// Where the process that loads the library puts its reports.
const ANSWER: &str = "CROSSOVER_TEST_DOCTOR_ANSWER";

#[test]
#[ignore = "the other half of the test below, in a process of its own"]
fn reports_into_a_folder() {
    let (vendor, root) = (shown("sm90", 3), Root::below("/nonexistent"));
    let mut report = Report::new();
    report.add("devices", gpus::examine(&root, vendor.name, &vendor.devices));
    let (reached, found) = peers::examine(&vendor, None, &platform());
    report.add("peers", found);
    let json = serde_json::to_string(&reached).expect("JSON");
    let folder = env::var_os(ANSWER).expect("where to put it");
    let put = |name: &str, bytes: &[u8]| fs::write(Path::new(&folder).join(name), bytes);
    let mut text = Vec::new();
    report.write(&mut text).expect("a vector takes all");
    put("text", &text).and_then(|()| put("json", json.as_bytes())).expect("written");
}

#[test]
fn a_machine_is_told_as_its_management_library_tells_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/tests/topology/nvml_stub.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(folder.path().join("libnvidia-ml.so.1"));
    match compiler.arg(source).output() {
        Ok(done) => assert!(done.status.success(), "{done:?}"),
        Err(why) => return crate::out::note(&format!("skipped: no C compiler: {why}")),
    }
    let done = Command::new(env::current_exe().expect("this test"))
        .args(["doctor::stub::reports_into_a_folder", "--exact", "--ignored"])
        .env("LD_LIBRARY_PATH", folder.path())
        .env(ANSWER, folder.path())
        .output()
        .expect("it starts");
    assert!(done.status.success(), "{done:?}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("it was put there");

    let text = read("text");
    let (_, text) = text.split_once("\n\n").expect("the version stands first");
    assert_eq!(text, include_str!("stub.txt"));
    let json: serde_json::Value = serde_json::from_str(&read("json")).expect("JSON");
    assert_eq!(json["devices"], serde_json::json!(["GPU-0", "GPU-1", "GPU-2"]));
    assert_eq!(json["joins"][0], serde_json::json!(["X", "NV17", "SYS"]));
    assert_eq!((&json["topology"], &json["p2p"]), (&"nvlink_partial".into(), &false.into()));
    assert_eq!(json["pairs"][0]["driver"], "ok");
    assert_eq!(json["pairs"].as_array().map(Vec::len), Some(6));
}
