//! NVIDIA's management library: the machine's where it is, and one that is written here.
#![allow(clippy::print_stderr, reason = "says what the machine is, and why a test skips")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crossover_device::error::DeviceError;
use crossover_device::topology::facts::{Ancestor, NvidiaFacts, P2p, Remote};
use crossover_device::topology::mesh::{Reach, nvidia};
use crossover_device::topology::nvml::{read, states};
use crossover_device::topology::state::{Clock, GpuState, Sharing, Slowdown};

#[test]
fn facts_are_those_of_the_machine_or_the_library_is_absent() {
    let facts = match read() {
        Ok(facts) => facts,
        Err(DeviceError::Absent(why)) => {
            eprintln!("skipped: needs an NVIDIA driver: {why}");
            assert!(why.contains("libnvidia-ml.so.1"), "{why}");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    eprintln!("{}", serde_json::to_string_pretty(&facts).unwrap());
    assert!(!facts.driver.is_empty());
    assert_eq!(facts.pairs.len(), facts.gpus.len() * facts.gpus.len().saturating_sub(1));
    for gpu in &facts.gpus {
        assert!(gpu.uuid.starts_with("GPU-"), "{gpu:?}");
        assert!(gpu.mig || gpu.instances.is_empty(), "{gpu:?}");
    }
    assert!(facts.gpus.is_sorted_by_key(|gpu| gpu.pci), "NVML's order is by PCI address");
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<NvidiaFacts>(&text).unwrap(), facts);
    if !facts.gpus.is_empty() {
        let all: Vec<String> = facts.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        eprintln!("{}", nvidia(&facts, &all).unwrap());
    }
}

/// Where the process that loads the written library puts what it read.
const ANSWER: &str = "CROSSOVER_TEST_NVML_ANSWER";

#[test]
#[ignore = "the other half of the test below, in a process of its own"]
fn reads_into_a_file() {
    let facts = read().map_err(|error| error.to_string());
    let states = states().map_err(|error| error.to_string());
    let text = serde_json::to_string(&(facts, states)).unwrap();
    fs::write(env::var_os(ANSWER).unwrap(), text).unwrap();
}

type Answer = (Result<NvidiaFacts, String>, Result<Vec<GpuState>, String>);

/// What a process reads in which the library is that of `folder`.
fn answer_with(folder: &Path) -> Answer {
    let answer = folder.join("answer");
    let done = Command::new(env::current_exe().unwrap())
        .args(["nvml::reads_into_a_file", "--exact", "--ignored"])
        .env("LD_LIBRARY_PATH", folder)
        .env(ANSWER, &answer)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    serde_json::from_str(&fs::read_to_string(answer).unwrap()).unwrap()
}

fn read_with(folder: &Path) -> Result<NvidiaFacts, String> {
    answer_with(folder).0
}

/// The library of `nvml_stub.c` in a folder; `None` without a compiler.
fn stub(options: &[&str]) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/topology/nvml_stub.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]).args(options).arg(source);
    match compiler.arg("-o").arg(folder.path().join("libnvidia-ml.so.1")).output() {
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(folder)
        }
        Err(why) => {
            eprintln!("skipped: no C compiler: {why}");
            None
        }
    }
}

#[test]
fn every_fact_is_asked_of_the_library() {
    let Some(folder) = stub(&[]) else { return };
    let facts = read_with(folder.path()).unwrap();
    assert_eq!((facts.driver.as_str(), facts.gpus.len(), facts.pairs.len()), ("580.65.06", 3, 6));
    let [zero, one, two] = facts.gpus.as_slice() else { panic!("{facts:?}") };
    assert_eq!((zero.uuid.as_str(), zero.pci.to_string().as_str()), ("GPU-0", "0000:19:00.0"));

    // Of 36 links that the library answers about, 18 have a state.
    assert_eq!((zero.links.len(), zero.links_up()), (18, 18));
    assert_eq!((one.links.len(), one.links_up()), (18, 17));
    assert!(zero.links.iter().all(|link| link.remote == Remote::Switch));
    assert_eq!((one.links[3].up, one.links[3].remote), (false, Remote::Unknown));
    assert_eq!(
        two.links.iter().map(|link| link.remote).collect::<Vec<_>>(),
        [Remote::Gpu(zero.pci)]
    );

    assert_eq!((zero.mig, one.mig, two.mig), (false, false, true));
    let parts = two.instances.iter();
    let parts: Vec<_> = parts.map(|part| (part.uuid.as_str(), part.gpu_instance)).collect();
    assert_eq!(parts, [("MIG-0", 9), ("MIG-1", 10)]);

    let fabric = one.fabric.as_ref().unwrap();
    assert_eq!((fabric.cluster.clone(), fabric.clique), ("ab".repeat(16), 5));
    assert_eq!((fabric.is_joined(), fabric.is_degraded()), (true, true));
    assert_eq!(two.fabric, None);

    let pair = facts.pair("GPU-1", "GPU-0").unwrap();
    assert_eq!((&pair.read, &pair.write, &pair.nvlink), (&P2p::Unknown, &P2p::Ok, &P2p::Ok));
    assert_eq!((pair.ancestor, pair.refusal()), (Some(Ancestor::Switch), None));
    let pair = facts.pair("GPU-0", "GPU-2").unwrap();
    assert_eq!(pair.ancestor, Some(Ancestor::System));
    let refusal = pair.refusal().unwrap();
    assert!(refusal.contains("a setting of the driver disables it"), "{refusal}");

    let found = nvidia(&facts, &["GPU-0".to_owned(), "GPU-1".to_owned()]).unwrap();
    assert_eq!(found.reach, Reach::NvlinkFull);
    assert!(found.why.contains("at least 17 links through switches"), "{found}");
}

#[test]
fn how_a_gpu_is_now_is_told_as_far_as_the_driver_tells() {
    let Some(folder) = stub(&[]) else { return };
    let states = answer_with(folder.path()).1.unwrap();
    let well = GpuState {
        uuid: "GPU-0".to_owned(),
        processor_clock: Some(Clock { now: 1980, most: 1980 }),
        memory_clock: Some(Clock { now: 3201, most: 3201 }),
        slowed_by: Vec::new(),
        persistent: Some(true),
        ecc: Some(true),
        uncorrected: Some(0),
        shared: Some(Sharing::Everyone),
    };
    let ill = GpuState {
        uuid: "GPU-1".to_owned(),
        processor_clock: Some(Clock { now: 990, most: 1980 }),
        slowed_by: vec![Slowdown::Power, Slowdown::Hardware, Slowdown::HardwareHeat],
        persistent: Some(false),
        uncorrected: Some(3),
        shared: Some(Sharing::OneProcess),
        ..well.clone()
    };
    let silent = GpuState { uuid: "GPU-2".to_owned(), ..GpuState::default() };
    assert_eq!(states, [well, ill, silent]);
}

#[test]
fn a_library_without_a_driver_is_told_so() {
    let Some(folder) = stub(&["-DSTART=9"]) else { return };
    let (facts, states) = answer_with(folder.path());
    let why = facts.unwrap_err();
    assert!(why.starts_with("no NVIDIA driver: libnvidia-ml.so.1 is there"), "{why}");
    assert_eq!(states.unwrap_err(), why);
}

#[test]
fn a_library_that_is_none_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("libnvidia-ml.so.1"), "not a library").unwrap();
    let why = read_with(folder.path()).unwrap_err();
    assert!(why.starts_with("no NVIDIA management library: "), "{why}");
    assert!(why.contains("too short") || why.contains("invalid ELF"), "{why}");
}
