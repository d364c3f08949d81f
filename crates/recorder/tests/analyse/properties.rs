//! Random histories: the same on all ranks, wherever each of them is, is never a divergence; one
//! change on one rank always names it.

use crossover_core::call::{Dtype, Op};
use crossover_recorder::{Class, What};
use proptest::prelude::*;

use crate::sim::{Entry, Group, call, note, op, state};

fn entry() -> impl Strategy<Value = Entry> {
    let site = prop::sample::select(vec!["", "a", "b", "c"]);
    let what = prop::sample::select(vec![0, 1, 2, 3, 4]);
    (what, 1..5_u64, site).prop_map(|(what, count, site)| match what {
        0 => state(count),
        1 => note(What::Replay, count),
        2 => op(Op::AllGather, count, site),
        3 => Entry { dtype: Dtype::Bf16, ..call(count, site) },
        _ => call(count, site),
    })
}

/// Something else than `entry`, on the same calls or off them.
fn mutated(entry: &Entry, how: u8) -> Entry {
    match how {
        0 => Entry { count: entry.count + 100, ..entry.clone() },
        1 => Entry { target: "host/two_shot".to_owned(), ..entry.clone() },
        2 => Entry { dtype: Dtype::F64, ..entry.clone() },
        _ => call(999, "elsewhere"),
    }
}

const PARTED: [Class; 7] = [
    Class::ConfigDivergence,
    Class::StateDrift,
    Class::DivergedBeforeWindow,
    Class::BranchDivergence,
    Class::DecisionDivergence,
    Class::SizeMismatch,
    Class::ArgumentMismatch,
];

proptest! {
    #[test]
    fn ranks_that_do_the_same_never_part(
        entries in prop::collection::vec(entry(), 1..60),
        behind in prop::collection::vec((0..8_usize, 0..2_u64, 1..40_u64), 2..=8),
        torn in prop::collection::vec((0..8_usize, 1..60_u64), 0..4),
    ) {
        let mut group = Group::new("tp", 7, behind.len() as u32);
        for (rank, (behind, open, keep)) in group.ranks.iter_mut().zip(&behind) {
            let made = &entries[..entries.len().saturating_sub(*behind)];
            made.iter().for_each(|entry| rank.make(entry));
            let finished = &mut rank.image.progress.finished;
            *finished = finished.saturating_sub(*open);
            rank.keep(*keep);
        }
        for (rank, number) in torn {
            if let Some(rank) = group.ranks.get_mut(rank) {
                rank.image.records.remove(&number);
            }
        }
        for verdict in group.diagnosis().verdicts {
            prop_assert!(!PARTED.contains(&verdict.class), "{}", verdict.sentence);
        }
    }

    #[test]
    fn one_change_on_one_rank_names_it(
        entries in prop::collection::vec(entry(), 1..60),
        world in 3..=8_u32,
        odd in 0..8_u32,
        at in 0..60_usize,
        how in 0..6_u8,
    ) {
        let (odd, at) = (odd % world, at % entries.len());
        let mut other = entries.clone();
        match how {
            4 => drop(other.remove(at)),
            5 => other.insert(at, call(999, "elsewhere")),
            _ => other[at] = mutated(&entries[at], how),
        }
        let mut group = Group::new("tp", 7, world);
        for (rank, image) in (0..).zip(&mut group.ranks) {
            let entries = if rank == odd { &other } else { &entries };
            entries.iter().for_each(|entry| image.make(entry));
        }
        // A note that was left out last is none yet.
        let note_at_end = how == 4 && entries[at..].iter().all(|entry| *entry == entries[at])
            && entries[at].what == What::State;
        let verdicts = group.diagnosis().verdicts;
        let named = verdicts.first().is_some_and(|verdict| {
            let more = how == 5 && other[..entries.len()] == entries[..];
            match more {
                // All others lack what was added last.
                true => verdict.class == Class::NotArrived && !verdict.ranks.contains(&odd),
                false => verdict.ranks == [odd],
            }
        });
        prop_assert!(named || note_at_end, "{verdicts:#?}");
    }

    #[test]
    fn any_rings_at_all_are_survived(
        rings in prop::collection::vec(
            (
                prop::collection::vec(entry(), 0..12),
                0..3_u64,
                0..4_u32,
                (0..20_u64, 0..20_u64),
                0..6_usize,
            ),
            0..8,
        ),
    ) {
        let images: Vec<_> = rings.into_iter().map(|(entries, number, rank, far, phase)| {
            let (issued, finished) = far;
            let mut ring = Group::new("tp", number, 4).ranks.remove(rank as usize);
            entries.iter().for_each(|entry| ring.make(entry));
            ring.image.progress.issued = issued;
            ring.image.progress.finished = finished;
            ring.image.progress.phase = crossover_recorder::Phase::ALL[phase];
            ring.image.about.members.truncate(phase);
            ring.image
        }).collect();
        for diagnosis in crossover_recorder::analyse_twice(&images, &images) {
            prop_assert!(!crossover_recorder::text(&diagnosis).is_empty());
        }
    }
}
