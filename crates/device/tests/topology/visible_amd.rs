//! `ROCR_VISIBLE_DEVICES` and `HIP_VISIBLE_DEVICES`.

use crossover_device::topology::visible::{hip, rocr};
use proptest::prelude::*;

fn four() -> Vec<String> {
    ["babababababababa", "abbaabbaabbaabba", "babaabbaabbababa", "abbababababaabba"]
        .map(|id| format!("GPU-{id}"))
        .to_vec()
}

fn pick(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|number| four()[*number].clone()).collect()
}

#[track_caller]
fn check_rocr(list: &str, numbers: &[usize], is_cut: bool) {
    let visible = rocr(&four(), Some(list));
    assert_eq!((&visible.uuids, visible.ended.is_some()), (&pick(numbers), is_cut), "{visible:?}");
}

#[track_caller]
fn check_hip(list: &str, numbers: &[usize], is_cut: bool) {
    let visible = hip(&four(), Some(list), Some("3"));
    assert_eq!((&visible.uuids, visible.ended.is_some()), (&pick(numbers), is_cut), "{visible:?}");
}

#[test]
fn the_runtime_s_list_names_by_number_or_uuid() {
    assert_eq!(rocr(&four(), None).uuids, four());
    check_rocr("", &[], false);
    check_rocr("-1", &[], true);
    check_rocr("GPU-XX", &[], true);
    check_rocr("3,GPU-BABABABABABABABA,4", &[3, 0], true);
    check_rocr("1,GPU-ABBAABBAABBAABBA,GPU-XX", &[1], true);
    check_rocr("3,GPU-BABAABBA,GPU-XX", &[3, 2], true);
    check_rocr("GPU-ab", &[], true);
    check_rocr("0x2,01", &[2, 1], false);
    check_rocr("0,1x,2", &[0], true);
}

#[test]
fn hip_s_list_is_more_patient() {
    check_hip("2,0", &[2, 0], false);
    check_hip("1,1,0", &[1, 0], false);
    check_hip("0,01,2", &[0], true);
    check_hip("0, 1", &[0], true);
    check_hip("7", &[], true);
    check_hip("GPU-babaabba,1", &[2, 1], false);
    // An empty one says nothing: the other name is asked, and then nobody.
    check_hip("", &[3], false);
    assert_eq!(hip(&four(), None, Some("2")).uuids, pick(&[2]));
    assert_eq!(hip(&four(), Some(""), Some("")).uuids, four());
    assert_eq!(hip(&four(), None, None).uuids, four());
}

#[test]
fn hip_counts_what_the_runtime_left() {
    let left = rocr(&four(), Some("1,2")).uuids;
    assert_eq!(hip(&left, Some("0"), None).uuids, pick(&[1]));
    assert_eq!(hip(&left, Some("1,0"), None).uuids, pick(&[2, 1]));
    let cut = hip(&left, Some("0,2"), None);
    assert_eq!(cut.uuids, pick(&[1]));
    let why = "HIP_VISIBLE_DEVICES ends at `2`: there is no such device";
    assert_eq!(cut.ended.as_deref(), Some(why));
}

proptest! {
    /// Filters choose: never a stranger, never one twice, whatever is written.
    #[test]
    fn any_list_is_read(
        first in prop::option::of("([0-9]|-|x|GPU-[a-b]{1,4}|,|\\PC){0,10}"),
        second in prop::option::of("([0-9]|-|GPU-[a-b]{1,4}|,|\\PC){0,10}"),
    ) {
        let left = rocr(&four(), first.as_deref()).uuids;
        let seen = hip(&left, second.as_deref(), None).uuids;
        for (from, chosen) in [(&four(), &left), (&left, &seen)] {
            let mut unique = chosen.clone();
            unique.sort();
            unique.dedup();
            prop_assert_eq!(unique.len(), chosen.len());
            prop_assert!(chosen.iter().all(|uuid| from.contains(uuid)));
        }
    }
}
