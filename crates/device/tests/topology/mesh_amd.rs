//! XGMI between the GPUs of a group.

use crossover_device::topology::kfd::{self, AmdFacts};
use crossover_device::topology::mesh::{Reach, amd};

use crate::machines::{Node, divided, mi300x, radeons, write};

fn read(nodes: &[Node]) -> AmdFacts {
    let folder = tempfile::tempdir().unwrap();
    write(nodes, folder.path());
    kfd::read(folder.path()).unwrap()
}

fn uuids(facts: &AmdFacts) -> Vec<String> {
    facts.gpus().map(kfd::Node::uuid).collect()
}

#[track_caller]
fn check(nodes: &[Node], reach: Reach, why: &str) {
    let facts = read(nodes);
    let found = amd(&facts, &uuids(&facts)).unwrap();
    assert_eq!(found.reach, reach, "{found}");
    assert!(found.why.contains(why), "{found}");
}

#[test]
fn eight_mi300x_are_a_full_mesh() {
    check(&mi300x(), Reach::XgmiFull, "XGMI between every pair");
    assert_eq!(Reach::XgmiFull.class(), "xgmi_full");
}

#[test]
fn one_link_less_is_none() {
    let mut nodes = mi300x();
    nodes[4].links.retain(|link| link.0 != 7);
    check(&nodes, Reach::Pcie, "no link from GPU-0000000000001004 to GPU-0000000000001007");
    let mut nodes = mi300x();
    nodes[7].links.retain(|link| link.0 != 4);
    check(&nodes, Reach::Pcie, "no link from GPU-0000000000001007 to GPU-0000000000001004");
    let mut nodes = mi300x();
    nodes[4].links.iter_mut().filter(|link| link.0 == 7).for_each(|link| link.3 = 0);
    check(&nodes, Reach::Pcie, "is disabled");
    let mut nodes = mi300x();
    nodes[4].links.iter_mut().filter(|link| link.0 == 7).for_each(|link| link.2 = 30);
    check(&nodes, Reach::Pcie, "takes 2 hops");
}

#[test]
fn radeons_have_pci_express() {
    check(&radeons(), Reach::Pcie, "their link is PCI Express");
}

#[test]
fn partitions_are_devices_of_their_own() {
    check(&divided(), Reach::XgmiFull, "every pair");
    let facts = read(&divided());
    let parts = uuids(&facts);
    let found = amd(&facts, &[parts[1].clone(), parts[1].clone()]).unwrap();
    assert_eq!(found.why, "one device: all 2 ranks are on GPU-b0a0000000000000/1");
    // A board's name alone does not tell which.
    let error = amd(&facts, &["GPU-b0a0000000000000".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("it has GPU-b0a0000000000000/0, GPU-b0a0000000000000/1"), "{error}");
}
