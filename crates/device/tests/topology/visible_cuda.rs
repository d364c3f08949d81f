//! `CUDA_VISIBLE_DEVICES` in all its forms.

use crossover_device::topology::facts::NvidiaFacts;
use crossover_device::topology::visible::{Order, Visible, cuda};
use proptest::prelude::*;

use crate::machines::{divide, gpu, group, pcie};

fn see(facts: &NvidiaFacts, list: &str) -> Visible {
    cuda(&facts.gpus, Some(list), Order::PciBusId).unwrap()
}

/// Four GPUs; the list sees these, and says why it ends if it does.
#[track_caller]
fn check(list: &str, numbers: &[u32], ended: Option<&str>) {
    let visible = see(&pcie(4), list);
    assert_eq!(visible.uuids, group(numbers), "{visible:?}");
    match ended {
        None => assert_eq!(visible.ended, None),
        Some(why) => {
            let said = visible.ended.unwrap();
            assert!(said.contains(why), "{said}");
        }
    }
}

#[test]
fn unset_is_all_and_empty_is_none() {
    let facts = pcie(4);
    let all = cuda(&facts.gpus, None, Order::FastestFirst).unwrap();
    assert_eq!(all, Visible { uuids: group(&[0, 1, 2, 3]), ended: None });
    check("", &[], None);
    check("  ", &[], None);
}

#[test]
fn numbers_choose_and_order() {
    check("2,3,0,1", &[2, 3, 0, 1], None);
    check("1", &[1], None);
    check(" 3 , 1", &[3, 1], None);
    check("+2", &[2], None);
    check("1gpu2,2ampere", &[1, 2], None);
}

#[test]
fn a_list_ends_at_what_names_nothing() {
    check("0,1,-1,2", &[0, 1], Some("ends at `-1`"));
    check("-1", &[], Some("ends at `-1`"));
    check("0,4,1", &[0], Some("ends at `4`: names no device"));
    check("NoDevFiles", &[], Some("ends at `NoDevFiles`"));
    check("1,NoDevFiles,2", &[1], Some("ends at `NoDevFiles`"));
    check("0,,1", &[0], Some("ends at ``"));
    check("0,99999999999999999999999,1", &[0], Some("names no device"));
}

#[test]
fn a_list_that_repeats_is_an_empty_one() {
    check("0,1,0", &[], Some("ends at `0`: repeats one"));
    check("1,1x", &[], Some("repeats one"));
    check(&format!("{},{}", gpu(1), gpu(1)), &[], Some("repeats one"));
    check(&format!("{},GPU-00000001", gpu(1)), &[], Some("repeats one"));
}

#[test]
fn uuids_may_be_cut_short_while_they_are_one_device_s() {
    check(&format!("{},{}", gpu(3), gpu(0)), &[3, 0], None);
    check("GPU-00000002,GPU-00000001", &[2, 1], None);
    check("GPU-0", &[], Some("more than one device starts so"));
    check("GPU-00000001,GPU-77,GPU-00000002", &[1], Some("no device of this machine starts so"));
    check("GPU-00000001,2", &[1], Some("`2`: is not of the kind GPU-"));
    check("0,GPU-00000001", &[0], Some("ends at `GPU-00000001`"));
}

#[test]
fn numbers_of_unlike_gpus_are_the_drivers_to_tell() {
    let mut facts = pcie(3);
    facts.gpus[1].name = "NVIDIA H200".to_owned();
    assert_eq!(cuda(&facts.gpus, Some("0"), Order::FastestFirst), None);
    assert_eq!(cuda(&facts.gpus, None, Order::FastestFirst), None);
    assert_eq!(see(&facts, "0").uuids, group(&[0]));
    // A UUID is the same in every order.
    let named = cuda(&facts.gpus, Some(&gpu(1)), Order::FastestFirst).unwrap();
    assert_eq!(named.uuids, group(&[1]));
}

#[test]
fn orders_have_two_names() {
    assert_eq!("PCI_BUS_ID".parse(), Ok(Order::PciBusId));
    assert_eq!("FASTEST_FIRST".parse(), Ok(Order::FastestFirst));
    let error = "fast".parse::<Order>().unwrap_err().to_string();
    assert_eq!(error, "CUDA_DEVICE_ORDER=fast: write FASTEST_FIRST or PCI_BUS_ID");
}

#[test]
fn instances_are_named_in_two_ways_and_seen_one_at_a_time() {
    let mut facts = pcie(3);
    divide(&mut facts, 1, 3);
    let part = |at: usize| facts.gpus[1].instances[at].uuid.clone();
    let older = format!("MIG-{}/9/0", gpu(1));
    for list in [part(2), older, "MIG-00000001-0002".to_owned()] {
        assert_eq!(see(&facts, &list), Visible { uuids: vec![part(2)], ended: None }, "{list}");
    }
    let several = see(&facts, &format!("{},{}", part(1), part(0)));
    assert_eq!(several.uuids, [part(1)]);
    assert!(several.ended.unwrap().contains("one MIG instance and nothing beside it"));
    // A divided GPU stands for its first instance, and hides whole ones.
    assert_eq!(see(&facts, "1").uuids, [part(0)]);
    assert_eq!(see(&facts, "0,1,2").uuids, [part(0)]);
    assert_eq!(see(&facts, "0,2").uuids, group(&[0, 2]));
    assert_eq!(cuda(&facts.gpus, None, Order::PciBusId).unwrap().uuids, [part(0)]);
    assert!(see(&facts, "MIG-nothing").ended.unwrap().contains("no device"));
    assert_eq!(see(&facts, "MIG-").uuids, [""; 0]);
}

#[test]
fn a_divided_gpu_without_instances_is_of_no_use() {
    let mut facts = pcie(2);
    divide(&mut facts, 0, 0);
    assert_eq!(see(&facts, "0,1").uuids, group(&[1]));
}

proptest! {
    /// A list of different numbers sees these GPUs in that order; so do their UUIDs.
    #[test]
    fn numbers_and_uuids_say_the_same(
        order in Just((0_u32..8).collect::<Vec<_>>()).prop_shuffle(),
        count in 0_usize..8,
    ) {
        let (facts, chosen) = (pcie(8), &order[..count]);
        let numbers: Vec<String> = chosen.iter().map(u32::to_string).collect();
        let visible = see(&facts, &numbers.join(","));
        prop_assert_eq!(&visible.uuids, &group(chosen));
        prop_assert_eq!(&see(&facts, &group(chosen).join(",")), &visible);
        prop_assert_eq!(visible.ended, None);
    }

    /// Whatever is written: devices of the machine, none twice, and a reason wherever entries
    /// were not heeded.
    #[test]
    fn any_list_is_read(list in "([0-9]|-1|GPU-0000000[0-9]|MIG-|,|x|\\PC){0,12}") {
        let facts = pcie(4);
        let visible = see(&facts, &list);
        let mut unique = visible.uuids.clone();
        unique.sort();
        unique.dedup();
        prop_assert_eq!(unique.len(), visible.uuids.len());
        prop_assert!(visible.uuids.iter().all(|uuid| facts.gpu_of(uuid).is_some()));
        let entries = list.split(',').count();
        prop_assert!(visible.ended.is_some()
            || visible.uuids.len() == entries
            || list.trim().is_empty()
            || list.trim_start().starts_with(','));
    }
}
