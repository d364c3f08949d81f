//! A record that one side lacks, and differences of which only a part is kept.

use crossover_recorder::{Branch, Class};

use crate::sim::{Entry, Group, call, state};

/// Appends `usual` on all ranks but `odd`.
fn all_but(group: &mut Group, odd: usize, usual: &[Entry], other: &[Entry]) {
    for (at, rank) in group.ranks.iter_mut().enumerate() {
        let entries = if at == odd { other } else { usual };
        entries.iter().for_each(|entry| rank.make(entry));
    }
}

fn layers() -> [Entry; 4] {
    [call(64, "a"), call(128, "b"), call(64, "c"), call(256, "d")]
}

#[test]
fn a_call_that_was_left_out_or_added() {
    let [a, b, c, d] = layers();
    let usual = [a.clone(), b.clone(), c.clone(), d.clone()];
    let skips = [a.clone(), c.clone(), d.clone()];
    let adds = [a, call(7, "x"), b, c, d];
    for odd in 0..4 {
        let mut group = Group::new("tp", 7, 4);
        all_but(group.steps(0..2), odd, &usual, &skips);
        let verdict = group.verdict();
        assert_eq!(verdict.branch, Some(Branch::Skipped), "{}", verdict.sentence);
        assert_eq!((verdict.ranks, verdict.site.as_deref()), (vec![odd as u32], Some("b")));
        assert!(verdict.sentence.contains(&format!("rank {odd} skipped all_reduce sum of 128")));

        let mut group = Group::new("tp", 7, 4);
        all_but(group.steps(0..2), odd, &usual, &adds);
        let verdict = group.verdict();
        assert_eq!(verdict.branch, Some(Branch::Extra), "{}", verdict.sentence);
        assert_eq!(verdict.ranks, [odd as u32]);
        assert!(verdict.found.expect("it is kept").contains("7 x f32"));
    }
}

#[test]
fn a_skipped_note_of_state_is_a_skipped_record() {
    let mut group = Group::new("tp", 7, 4);
    let [a, b, ..] = layers();
    all_but(group.steps(0..2), 2, &[state(1), a.clone(), b.clone()], &[a, b]);
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.branch), (Class::BranchDivergence, Some(Branch::Skipped)));
    assert_eq!(verdict.ranks, [2]);
    assert!(verdict.sentence.contains("skipped a note of state"), "{}", verdict.sentence);
}

#[test]
fn sizes_alone_differ_although_sites_are_not_known() {
    // Skipped: what follows matches when one is left out.
    let without_sites = layers().map(|entry| Entry { site: String::new(), ..entry });
    let [a, b, c, d] = without_sites;
    let mut group = Group::new("tp", 7, 3);
    all_but(group.steps(0..1), 1, &[a.clone(), b.clone(), c.clone()], &[b.clone(), c.clone()]);
    assert_eq!(group.verdict().branch, Some(Branch::Skipped));
    // A mismatch: what follows matches as it is.
    let mut group = Group::new("tp", 7, 3);
    all_but(group.steps(0..1), 1, &[a, b.clone(), c.clone()], &[d, b, c]);
    assert_eq!(group.verdict().class, Class::SizeMismatch);
}

#[test]
fn at_the_front_the_last_round_tells_that_a_call_was_left_out() {
    let [a, b, c, d] = layers();
    let mut group = Group::new("tp", 7, 3);
    for _ in 0..3 {
        group.make(&[a.clone(), b.clone(), c.clone(), d.clone()]);
    }
    group.make(&[a]).part(2, &b, &c);
    let verdict = group.verdict();
    assert_eq!((verdict.branch, verdict.ranks), (Some(Branch::Skipped), vec![2]));
}

#[test]
fn what_is_older_than_the_rings_is_said_to_be() {
    let mut group = Group::new("tp", 7, 4);
    group.steps(0..2).part(1, &call(64, ""), &call(32, "")).steps(2..5);
    group.ranks.iter_mut().for_each(|rank| rank.keep(10));
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::DivergedBeforeWindow, vec![1]));
    assert_eq!(verdict.number, Some(32));
    // The oldest record differs by itself; whether it is the first to differ cannot be known.
    let mut group = Group::new("tp", 7, 4);
    group.steps(0..2).part(1, &call(64, ""), &call(32, ""));
    group.ranks.iter_mut().for_each(|rank| rank.keep(1));
    assert_eq!(group.verdict().class, Class::DivergedBeforeWindow);
}

#[test]
fn torn_records_do_not_hide_a_difference() {
    for lost in [[16, 17], [17, 18], [14, 15]] {
        let mut group = Group::new("tp", 7, 4);
        group.steps(0..2).part(1, &call(64, ""), &call(32, "")).make(&[call(64, ""), call(9, "")]);
        let records = &mut group.ranks[1].image.records;
        lost.iter().for_each(|number| assert!(records.remove(number).is_some()));
        let diagnosis = group.diagnosis();
        let verdict = &diagnosis.verdicts[0];
        assert_eq!(verdict.ranks, [1], "{}", verdict.sentence);
        let visible = !lost.contains(&17);
        let class = if visible { Class::SizeMismatch } else { Class::DivergedBeforeWindow };
        assert_eq!(verdict.class, class, "{lost:?}: {}", verdict.sentence);
        assert!(diagnosis.notes[0].ends_with("2 records are torn or lost"));
    }
}

#[test]
fn a_torn_record_of_the_majority_does_not_make_a_tie() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2).part(1, &call(64, ""), &call(32, "")).make(&[call(64, "")]);
    group.ranks[2].image.records.remove(&17);
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::SizeMismatch, vec![1]));
}

#[test]
fn a_ring_whose_records_are_cut_off_is_compared_by_its_digest() {
    for (drifted, expected) in [(false, None), (true, Some(Class::DivergedBeforeWindow))] {
        let mut group = Group::new("tp", 7, 3);
        let count = if drifted { 32 } else { 64 };
        group.steps(0..2).part(1, &call(64, ""), &call(count, ""));
        for rank in &mut group.ranks {
            rank.image.life = crossover_recorder::Life::Unknown;
            rank.image.progress.finished = rank.image.progress.issued;
        }
        group.ranks[1].image.records.clear();
        let verdicts = group.diagnosis().verdicts;
        assert_eq!(verdicts.first().map(|verdict| verdict.class), expected);
    }
}

#[test]
fn windows_that_do_not_overlap_are_not_compared() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2);
    group.ranks[..2].iter_mut().for_each(|rank| {
        (0..100).for_each(|_| rank.make(&call(64, "")));
        rank.keep(20);
    });
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::NotArrived, vec![2]));
}
