//! AMD's nodes, read from folders.

use std::fs;

use crossover_device::error::DeviceError;
use crossover_device::topology::kfd::{AmdFacts, LinkKind, read};
use proptest::prelude::*;

use crate::machines::{Node, divided, mi300x, radeons, write};

fn folder(nodes: &[Node]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(nodes, folder.path());
    folder
}

#[test]
fn a_machine_of_eight_is_read_whole() {
    let facts = read(folder(&mi300x()).path()).unwrap();
    assert_eq!((facts.nodes.len(), facts.gpus().count()), (10, 8));
    let gpu = facts.gpu("GPU-0000000000001009").unwrap();
    assert_eq!((gpu.number, gpu.arch.as_str(), gpu.compute_units), (9, "gfx942", 304));
    assert_eq!((gpu.pci.to_string().as_str(), gpu.memory), ("0000:09:00.0", 206_141_652_992));
    assert_eq!((gpu.partition, gpu.divided, gpu.links.len()), (0, false, 8));
    assert_eq!(gpu.link_to(2).unwrap().kind, LinkKind::Xgmi);
    assert_eq!(gpu.link_to(1).unwrap().kind, LinkKind::Pcie);
    assert!(!facts.nodes[0].is_gpu());
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<AmdFacts>(&text).unwrap(), facts);
}

#[test]
fn nodes_are_counted_as_numbers() {
    let mut nodes = mi300x();
    nodes.extend(mi300x().into_iter().skip(2).take(2).enumerate().map(|(at, node)| Node {
        unique_id: 0x2000 + at as u64,
        links: vec![],
        ..node
    }));
    let facts = read(folder(&nodes).path()).unwrap();
    let numbers: Vec<u32> = facts.nodes.iter().map(|node| node.number).collect();
    assert_eq!(numbers, (0..12).collect::<Vec<u32>>());
}

#[test]
fn partitions_have_a_board_s_name_and_a_number() {
    let facts = read(folder(&divided()).path()).unwrap();
    let uuids: Vec<String> = facts.gpus().map(|gpu| gpu.uuid()).collect();
    let boards = ["GPU-b0a0000000000000", "GPU-b0a0000000000001"];
    let expected = boards.iter().flat_map(|board| [format!("{board}/0"), format!("{board}/1")]);
    assert_eq!(uuids, expected.collect::<Vec<_>>());
    let addresses: Vec<String> = facts.gpus().map(|gpu| gpu.pci.to_string()).collect();
    assert_eq!(addresses, ["0000:20:00.0", "0000:20:00.0", "0000:21:00.0", "0000:21:00.0"]);
    assert_eq!(facts.gpus().map(|gpu| gpu.partition).collect::<Vec<_>>(), [0, 1, 0, 1]);
}

#[test]
fn architectures_are_as_compilers_write_them() {
    for (version, arch) in [
        (90_402, "gfx942"),
        (90_010, "gfx90a"),
        (90_500, "gfx950"),
        (110_000, "gfx1100"),
        (100_306, "gfx1036"),
    ] {
        let mut nodes = radeons();
        nodes[1].version = version;
        let facts = read(folder(&nodes).path()).unwrap();
        assert_eq!(facts.nodes[1].arch, arch);
    }
}

#[test]
fn a_machine_without_the_driver_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(&folder.path().join("nodes")).unwrap_err();
    assert!(matches!(&error, DeviceError::Absent(why) if why.contains("no AMD GPU")), "{error}");
    assert_eq!(read(folder.path()).unwrap(), AmdFacts::default());
}

#[test]
fn what_a_container_must_not_see_is_left_out() {
    let folder = folder(&mi300x());
    fs::write(folder.path().join("3/properties"), "").unwrap();
    let facts = read(folder.path()).unwrap();
    assert_eq!(facts.gpus().count(), 7);
    assert!(facts.gpu("GPU-0000000000001003").is_none());
}

#[track_caller]
fn garbage(file: &str, text: &str, says: &str) {
    let folder = folder(&radeons());
    fs::write(folder.path().join(file), text).unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    let path = folder.path().join(file);
    assert_eq!(error, format!("{}{says}", path.display()));
}

#[test]
fn garbage_is_told_with_file_and_line() {
    garbage("1/properties", "simd_count 4\nwhat?\n", ":2: `what?` is no name and number");
    garbage("1/properties", "simd_count -4\n", ":1: `simd_count -4` is no name and number");
    garbage(
        "1/properties",
        "cpu_cores_count 0\nsimd_count 99999999999\n",
        ":2: 99999999999 is too large for `simd_count`",
    );
    garbage("1/properties", "cpu_cores_count 0\n", ": there is no `simd_count`");
    garbage("1/properties", "simd_count 4\n", ":1: a node with SIMDs has a `gfx_target_version`");
    garbage(
        "1/properties",
        "simd_count 4\ngfx_target_version 99999\n",
        ":2: it names no architecture",
    );
    garbage("1/io_links/1/properties", "type 2\n", ": there is no `node_from`");
    garbage(
        "1/io_links/1/properties",
        "type 2\nnode_from 7\n",
        ":2: a link of node 1 begins there",
    );
    garbage("2/mem_banks/0/properties", "heap_type x\n", ":1: `heap_type x` is no name and number");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No text in a node's file makes it panic.
    #[test]
    fn any_text_is_read_or_refused(text in "([a-z_]{1,12} [0-9]{1,20}\n){0,4}\\PC{0,20}") {
        let folder = folder(&radeons());
        fs::write(folder.path().join("1/properties"), &text).unwrap();
        fs::write(folder.path().join("2/io_links/0/properties"), &text).unwrap();
        let read = read(folder.path());
        prop_assert!(read.is_ok() || read.unwrap_err().to_string().contains("properties"));
    }
}
