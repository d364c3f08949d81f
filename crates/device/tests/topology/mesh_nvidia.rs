//! NVLink between the GPUs of a group.

use crossover_device::topology::facts::{NvidiaFacts, P2p, Remote};
use crossover_device::topology::mesh::{Reach, nvidia};
use crossover_device::topology::visible::{Order, cuda};
use proptest::prelude::*;

use crate::machines::{add_link, bridged, clique, divide, gpu, group, pair, pcie, switched};

#[track_caller]
fn check(facts: &NvidiaFacts, numbers: &[u32], reach: Reach, why: &str) {
    let found = nvidia(facts, &group(numbers)).unwrap();
    assert_eq!(found.reach, reach, "{found}");
    assert!(found.why.contains(why), "{found}");
}

#[test]
fn links_of_pairs_are_full_for_the_pairs_alone() {
    let facts = bridged(pcie(4), &[(0, 1), (2, 3)], 4);
    check(&facts, &[0, 1], Reach::NvlinkFull, "every pair, at least 4 links");
    check(&facts, &[3, 2], Reach::NvlinkFull, "every pair");
    let missing = format!("no NVLink between {} and {}", gpu(0), gpu(2));
    check(&facts, &[0, 1, 2, 3], Reach::NvlinkPartial, &missing);
    check(&facts, &[0, 1, 2, 3], Reach::NvlinkPartial, "2 of 6 pairs");
    check(&facts, &[0, 2], Reach::Pcie, &missing);
}

#[test]
fn ordinals_are_those_of_the_environment() {
    // The first two that a process sees are the last two of the machine.
    let facts = bridged(pcie(4), &[(2, 3)], 4);
    let visible = cuda(&facts.gpus, Some("2,3,0,1"), Order::PciBusId).unwrap();
    let found = nvidia(&facts, &visible.uuids[..2]).unwrap();
    assert_eq!(found.reach, Reach::NvlinkFull, "{found}");
    let visible = cuda(&facts.gpus, None, Order::PciBusId).unwrap();
    let found = nvidia(&facts, &visible.uuids[..2]).unwrap();
    assert_eq!(found.reach, Reach::Pcie, "{found}");
}

#[test]
fn switches_join_all() {
    let facts = switched(8, 18);
    check(
        &facts,
        &[0, 1, 2, 3, 4, 5, 6, 7],
        Reach::NvlinkFull,
        "at least 18 links through switches",
    );
}

#[test]
fn links_that_are_not_there_are_not_missed() {
    // A GPU of 18 links, asked for 36: the 18 whose state is an error are not in the facts.
    let facts = switched(2, 18);
    assert_eq!((facts.gpus[0].links.len(), facts.gpus[0].links_up()), (18, 18));
    check(&facts, &[0, 1], Reach::NvlinkFull, "18 links");
}

#[test]
fn fewer_links_are_still_links_and_said() {
    let mut facts = switched(4, 18);
    facts.gpus[2].links.iter_mut().take(7).for_each(|link| link.up = false);
    check(&facts, &[0, 1, 2, 3], Reach::NvlinkFull, "at least 11 links");
    facts.gpus[2].links.iter_mut().for_each(|link| link.up = false);
    let none = format!("none of {}'s 18 links is up", gpu(2));
    check(&facts, &[0, 1, 2, 3], Reach::NvlinkPartial, &none);
    check(&facts, &[1, 2], Reach::Pcie, &none);
}

#[test]
fn the_drivers_no_is_never_overruled_and_its_yes_proves_nothing() {
    let mut facts = switched(2, 18);
    pair(&mut facts, 1, 0).nvlink = P2p::No("a setting of the driver disables it".to_owned());
    check(&facts, &[0, 1], Reach::Pcie, "a setting of the driver disables it");
    let mut facts = pcie(2);
    pair(&mut facts, 0, 1).nvlink = P2p::Ok;
    pair(&mut facts, 1, 0).nvlink = P2p::Ok;
    check(&facts, &[0, 1], Reach::Pcie, "has no links");
}

#[test]
fn ends_that_a_virtual_machine_hides_are_the_drivers_to_tell() {
    let mut facts = pcie(3);
    for number in 0..3 {
        (0..4).for_each(|_| add_link(&mut facts, number, true, Remote::Unknown));
    }
    pair(&mut facts, 0, 1).nvlink = P2p::Ok;
    pair(&mut facts, 1, 0).nvlink = P2p::Ok;
    check(&facts, &[0, 1], Reach::NvlinkFull, "4 links");
    pair(&mut facts, 0, 2).nvlink = P2p::Unknown;
    pair(&mut facts, 2, 0).nvlink = P2p::Unknown;
    check(&facts, &[0, 2], Reach::Pcie, "lead elsewhere");
}

#[test]
fn two_domains_on_one_machine_are_no_mesh() {
    let mut facts = switched(8, 18);
    for (number, gpu) in (0..).zip(&mut facts.gpus) {
        gpu.fabric = clique(number / 4);
    }
    check(&facts, &[0, 1, 2, 3], Reach::NvlinkFull, "through switches");
    check(&facts, &[0, 1, 2, 3, 4, 5, 6, 7], Reach::NvlinkPartial, "cliques 0 and 1");
}

#[test]
fn ranks_on_one_device_have_its_memory() {
    let found = nvidia(&pcie(2), &group(&[1, 1, 1, 1])).unwrap();
    assert_eq!((found.reach, found.reach.class()), (Reach::OneDevice, "nvlink_full"));
    assert_eq!(found.why, format!("one device: all 4 ranks are on {}", gpu(1)));
    // Two on one and two on another: the wire between the two decides.
    check(&pcie(2), &[0, 0, 1, 1], Reach::Pcie, "no NVLink");
}

#[test]
fn instances_of_a_divided_gpu_have_no_links() {
    let mut facts = switched(2, 18);
    divide(&mut facts, 0, 2);
    let parts: Vec<String> = facts.gpus[0].instances.iter().map(|part| part.uuid.clone()).collect();
    let found = nvidia(&facts, &parts).unwrap();
    assert_eq!(found.reach, Reach::Pcie);
    assert!(found.why.contains("is a MIG instance, which has no links"), "{found}");
    let found = nvidia(&facts, &[parts[0].clone(), parts[0].clone()]).unwrap();
    assert_eq!(found.reach, Reach::OneDevice);
}

#[test]
fn strangers_and_nobody_are_errors() {
    let error = nvidia(&pcie(1), &["GPU-x".to_owned()]).unwrap_err().to_string();
    assert_eq!(error, format!("NVML knows no device GPU-x on this machine; it has {}", gpu(0)));
    let error = nvidia(&pcie(1), &[]).unwrap_err().to_string();
    assert_eq!(error, "a group without devices has no topology");
}

#[test]
fn facts_can_be_kept_in_a_file() {
    let mut facts = bridged(switched(3, 17), &[(0, 1)], 2);
    divide(&mut facts, 2, 3);
    facts.gpus[0].fabric = clique(7);
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<NvidiaFacts>(&text).unwrap(), facts);
}

proptest! {
    /// Of any links between four GPUs: full exactly where every pair of the group has one, whatever
    /// the order of the ranks and however many are on a device.
    #[test]
    fn full_is_every_pair(mask in 0_u32..64, ranks in prop::collection::vec(0_u32..4, 1..8)) {
        let all = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        let linked: Vec<(u32, u32)> =
            (0..).zip(all).filter(|(at, _)| mask & 1 << at != 0).map(|(_, pair)| pair).collect();
        let facts = bridged(pcie(4), &linked, 2);
        let inside: Vec<bool> = all
            .iter()
            .filter(|(a, b)| ranks.contains(a) && ranks.contains(b))
            .map(|pair| linked.contains(pair))
            .collect();
        let expected = match (inside.iter().any(|l| *l), inside.iter().all(|l| *l)) {
            _ if inside.is_empty() => Reach::OneDevice,
            (_, true) => Reach::NvlinkFull,
            (true, false) => Reach::NvlinkPartial,
            (false, false) => Reach::Pcie,
        };
        prop_assert_eq!(nvidia(&facts, &group(&ranks)).unwrap().reach, expected);
        let reversed: Vec<u32> = ranks.iter().rev().copied().collect();
        prop_assert_eq!(nvidia(&facts, &group(&reversed)).unwrap().reach, expected);
    }
}
