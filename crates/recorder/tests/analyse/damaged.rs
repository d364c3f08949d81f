//! Rings that were copied while they moved, or claim what cannot be.

use std::panic::Location;

use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;
use crossover_core::record::{Entry, Event};
use crossover_recorder::{About, Damage, Image, Ring, analyse};
use tempfile::TempDir;

use crate::sim::Group;

/// Of rank 0 of two.
fn about() -> About {
    let targets = vec!["copy".to_owned(), "host/one_shot".to_owned()];
    About { targets, ..Group::new("tp", 7, 2).ranks[0].image.about.clone() }
}

fn make_call(ring: &Ring, seq: u64) {
    let call = CallSig {
        op: Op::AllReduce,
        dtype: Dtype::F32,
        reduce_op: ReduceOp::Sum,
        count: 64,
        mode: Mode::Eager,
        root: 0,
        split: Split::Even,
        contract: Contract::DEFAULT,
    };
    ring.write(&Entry { event: Event::Call(&call), seq, target: 1, site: Location::caller() });
    ring.finish();
}

fn bytes(ring: &Ring) -> Vec<u8> {
    std::fs::read(ring.path()).expect("a file")
}

#[test]
fn a_copy_of_a_ring_that_moved_is_as_old_as_its_first_page() {
    let folder = TempDir::new().expect("a folder");
    let ring = Ring::make(Some(folder.path()), about()).expect("memory").0;
    (1..=3).for_each(|seq| make_call(&ring, seq));
    let first = bytes(&ring);
    (4..=40).for_each(|seq| make_call(&ring, seq));
    let copied = [&first[..4096], &bytes(&ring)[4096..]].concat();
    let image = Image::parse(&copied, "x.ring").expect("a ring");
    let numbers: Vec<u64> = image.records.keys().copied().collect();
    assert_eq!((image.progress.finished, &*numbers), (3, &[1, 2, 3, 4][..]), "4 is just written");
    assert!(image.progress.born > 0 && image.progress.born <= image.progress.beat);
}

#[test]
fn a_rank_that_its_group_has_no_place_for_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let refused = |about: About| {
        let ring = Ring::make(Some(folder.path()), about).expect("memory").0;
        Image::parse(&bytes(&ring), "x.ring").expect_err("it cannot be")
    };
    for about in [
        About { rank: 2, ..about() },
        About { world: u32::MAX, rank: u32::MAX - 1, ..about() },
        About { nodes: Vec::new(), ..about() },
    ] {
        let why = refused(about);
        assert!(matches!(why, Damage::About { .. }), "{why}");
        assert!(why.to_string().contains("members on"), "{why}");
    }
}

#[test]
fn a_group_of_one_that_is_well_is_no_news() {
    let mut group = Group::new("tp", 7, 1);
    group.steps(0..1);
    assert_eq!(analyse(&group.images())[0].verdicts, []);
}
