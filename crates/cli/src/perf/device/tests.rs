//! Measuring on the processor in a device's place.

use std::path::Path;

use crossover_core::call::{Dtype, Mode, Op, ReduceOp};

use super::*;
use crate::group::Formation;
use crate::perf::Args;
use crate::perf::place::Place;
use crate::perf::support::{args, emulate};

/// A rank alone: it copies, through the driver.
fn alone(words: &[&str]) -> (Args, Place, Formation) {
    emulate();
    let args = args(words);
    let formation = Formation::from_env(&[]).expect("settings").set("device", "emulated", "a test");
    let (place, formation) = Place::resolve(&args, formation).expect("a device");
    (args, place, formation)
}

fn measured(op: Op, mode: Mode, size: u64) -> Measured {
    let (_, place, formation) = alone(&["all_reduce", "-n", "1"]);
    assert_eq!(
        place,
        Place::On { driver: "emulated".to_owned(), shared: false, one_process: false }
    );
    let group = formation.form(None).expect("a group of one");
    let host = formation.form_on_host().expect("a group of one");
    let beside = Beside::new(&host, op);
    let device = place.open(&group).expect("a device").expect("a device");
    let stage = Stage::new(&device, size).expect("memory");
    let case = Case::new(op, Dtype::Bf16, ReduceOp::Sum, (0, 1), size).mode(mode);
    let mut calls = 0;
    let mut all = stage.measure(&[&group], &beside, &case, Some(7), &mut calls).expect("measured");
    assert!(calls > 0);
    all.remove(0)
}

#[test]
fn every_op_is_right_and_timed_in_both_modes() {
    for &op in Op::ALL {
        for mode in [Mode::Eager, Mode::Graph] {
            let Measured { out_of_place, in_place, ran } = measured(op, mode, 1000);
            assert_eq!(ran, ["copy"], "{op} {mode}");
            for placed in [out_of_place, in_place] {
                assert_eq!((placed.wrong, placed.times.iterations), (0, 7), "{op} {mode}");
                assert!(placed.calls % 2 == 1, "{op} {mode}");
                assert_eq!(placed.host.is_some(), mode == Mode::Eager, "{op} {mode}");
            }
        }
    }
}

#[test]
fn sizes_from_nothing_to_large_are_measured() {
    for size in [0, 2, 3 * SMALL] {
        let Measured { out_of_place, in_place, .. } = measured(Op::AllReduce, Mode::Graph, size);
        assert_eq!(out_of_place.wrong + in_place.wrong, 0, "{size}");
        assert!(size == 0 || out_of_place.times.p50 > 0.0);
    }
}

#[test]
fn a_call_that_is_not_made_leaves_every_element_wrong() {
    let (_, place, formation) = alone(&["all_gather", "-n", "1"]);
    let group = formation.form(None).expect("a group of one");
    let device = place.open(&group).expect("a device").expect("a device");
    let stage = Stage::new(&device, 512).expect("memory");
    let case = Case::new(Op::AllGather, Dtype::F32, ReduceOp::Sum, (0, 1), 512);
    let placement = Placement::OutOfPlace;
    let mut slots = Slots::new(&case, placement, &stage.memory, &stage.stream).expect("memory");
    let mut calls = 0;
    slots.load(&mut calls).expect("it is written");
    assert_eq!(calls, SLOTS as u64);
    let all = (case.output * SLOTS) as u64;
    assert_eq!(slots.count_wrong().expect("it is read"), all);

    // One call of those: the others are still wrong.
    let call = case.signature(group.plan().contract());
    slots.run(2, &group, &call).expect("it runs");
    stage.stream.synchronize().expect("it ends");
    assert_eq!(slots.count_wrong().expect("it is read"), all - case.output as u64);
}

#[test]
fn the_whole_program_runs_on_a_device() {
    for mode in ["eager", "graph"] {
        let words = ["broadcast", "-n", "1", "-b", "8", "-e", "64", "--iters", "2", "--mode", mode];
        let (args, place, formation) = alone(&words);
        crate::perf::bench::run(&args, &formation, &place, &[8, 64]).expect("right results");
    }
}

/// A folder with the kernels for this processor, if they are built.
fn kernels() -> Option<tempfile::TempDir> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kernels/host");
    if !built.join("manifest.json").exists() {
        crate::out::note("skipped: it needs kernels for this processor: cargo xtask kernels host");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(&built, folder.path().join("emulated")).expect("a link");
    Some(folder)
}

#[test]
fn what_a_device_can_is_measured_where_there_are_kernels() {
    let (_, place, formation) = alone(&["all_reduce", "-n", "1"]);
    let group = formation.form(None).expect("a group of one");
    let host = formation.form_on_host().expect("a group of one");
    let beside = Beside::new(&host, Op::AllReduce);
    let device = place.open(&group).expect("a device").expect("a device");
    let stage = Stage::new(&device, 8).expect("memory");
    let measure = |folder: &Path| stage.floors(&group, &beside, Some(folder), false);
    let nowhere = tempfile::tempdir().expect("a folder");
    assert_eq!(measure(nowhere.path()).expect("it is said, and no failure"), None);

    let Some(folder) = kernels() else { return };
    let floors = measure(folder.path()).expect("measured").expect("there are kernels");
    let Floors { launch_us, empty_us, programmatic_us, memory, cached, pair, .. } = floors;
    for figure in [launch_us, empty_us, programmatic_us, memory, cached] {
        assert!(figure > 0.0, "{floors:?}");
    }
    assert_eq!(pair, None, "there is nobody to send to");
    assert_eq!((floors.cache, floors.ranks_per_device), (16 << 10, 1));
}

/// Threads are the ranks, on one device: the kernels themselves, every element checked after graphs, by
/// two algorithms in turn, and after batches.
#[test]
fn ranks_on_one_device_are_measured_in_turn() {
    let Some(folder) = kernels() else { return };
    let policy = folder.path().join("policy.toml");
    let text = "schema = 1\n[rule.all]\nchain = [{ use = \"ipc\" }]\n";
    std::fs::write(&policy, text).expect("a file");
    emulate();
    let formation = Formation::from_env(&[]).expect("settings");
    let formation = [
        ("device", "emulated"),
        ("ipc.kernels", &folder.path().display().to_string()),
        ("policy", &policy.display().to_string()),
        ("accept", "signed_zero_flush"),
    ]
    .into_iter()
    .fold(formation, |formation, (key, value)| formation.set(key, value, "a test"));
    for (mode, op, target) in [("graph", "all_gather", "all"), ("eager", "all_reduce", "ipc")] {
        let words = [op, "-n", "2", "--ranks-per-gpu", "2", "--one-process", "--iters", "2"];
        let args = args(&[&words[..], &["--use", target, "--mode", mode]].concat());
        let (place, _) = Place::resolve(&args, formation.clone()).expect("a device");
        crate::perf::threads::run(&args, 2, &formation, &place, &[1032]).expect("right results");
    }
}
