//! Processes that are gone, stopped or frozen, and groups that ended.

use crossover_recorder::{Class, Life, Phase, What};

use crate::sim::{BORN, Group, SECOND, call, fail, note, of_one_job};

/// Rank `dead` made one call less than the others, which wait.
fn waiting_for(dead: usize, world: u32) -> Group {
    let mut group = Group::new("tp", 7, world);
    group.steps(0..3);
    for (at, rank) in group.ranks.iter_mut().enumerate() {
        if at != dead {
            rank.begin(&call(64, "m.rs:9"));
        }
    }
    group
}

#[test]
fn a_dead_rank_explains_those_that_wait() {
    for world in 2..=8 {
        for dead in [0, world as usize / 2, world as usize - 1] {
            let mut group = waiting_for(dead, world);
            group.ranks[dead].image.life = Life::Gone;
            let verdict = group.verdict();
            assert_eq!((verdict.class, &*verdict.ranks), (Class::CrashedRank, &[dead as u32][..]));
            let process = format!("rank {dead} (host:{})", 100 + dead);
            assert!(verdict.sentence.contains(&process), "{}", verdict.sentence);
            assert!(verdict.evidence.iter().any(|line| line.ends_with("in calls")));
        }
    }
}

#[test]
fn peers_that_failed_because_of_it_are_not_blamed() {
    let mut group = waiting_for(2, 4);
    group.ranks[2].image.life = Life::Gone;
    for rank in [0, 1, 3] {
        fail(&mut group.ranks[rank], "rank 2 was lost");
        group.ranks[rank].image.life = Life::Gone;
    }
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::CrashedRank, vec![2]));
    assert!(verdict.evidence.contains(&"ranks 0, 1 and 3 failed in calls".to_owned()));
}

#[test]
fn stopped_and_frozen_ranks() {
    let mut group = waiting_for(1, 3);
    group.ranks[1].image.life = Life::Stopped;
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::StoppedRank, vec![1]));
    assert!(verdict.advice.iter().any(|line| line.contains("kill -CONT 101")));

    let mut group = waiting_for(0, 3);
    let taken = group.progress(0).taken;
    group.progress(0).beat = taken - 30 * SECOND;
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::Frozen, vec![0]));
    assert_eq!(verdict.age_ms, Some(30_000));
    // Who makes calls is not frozen, though it has no watchdog any more.
    let last = group.ranks[0].image.records.values_mut().next_back().expect("it made calls");
    last.at = taken - SECOND;
    assert_eq!(group.verdict().class, Class::NotArrived);
    // A ring without a watchdog has the first look that it was made with, which says nothing.
    let last = group.ranks[0].image.records.values_mut().next_back().expect("it made calls");
    last.at = taken - 30 * SECOND;
    assert_eq!(group.verdict().class, Class::Frozen);
    group.progress(0).beat = BORN;
    assert_eq!(group.verdict().class, Class::NotArrived);
}

#[test]
fn a_dead_rank_that_was_odd_before_is_told_as_both() {
    let mut group = Group::new("tp", 7, 4);
    group.steps(0..2).part(3, &call(64, ""), &call(32, ""));
    group.ranks[3].image.life = Life::Gone;
    let verdicts = group.diagnosis().verdicts;
    let told: Vec<_> = verdicts.iter().map(|v| (v.class, &*v.ranks)).collect();
    assert_eq!(told, [(Class::SizeMismatch, &[3][..]), (Class::CrashedRank, &[3][..])]);
}

#[test]
fn a_rank_that_is_later_than_the_dead_one_is_named_too() {
    let mut group = waiting_for(1, 4);
    group.ranks[3].image.life = Life::Gone;
    let verdicts = group.diagnosis().verdicts;
    let told: Vec<_> = verdicts.iter().map(|v| (v.class, &*v.ranks)).collect();
    assert_eq!(told, [(Class::CrashedRank, &[3][..]), (Class::NotArrived, &[1][..])]);
}

#[test]
fn a_process_that_is_lost_in_two_groups_is_told_once() {
    let mut tp = waiting_for(1, 4);
    let mut pp = Group::of("ep", 8, &[101, 900]);
    pp.steps(0..1);
    tp.ranks[1].image.life = Life::Gone;
    pp.ranks[0].image.life = Life::Gone;
    let diagnosis = of_one_job(&[pp.images(), tp.images()].concat());
    assert_eq!(diagnosis.verdicts.len(), 1, "{:#?}", diagnosis.verdicts);
    let verdict = &diagnosis.verdicts[0];
    assert_eq!((&*verdict.tag, verdict.class), ("tp", Class::CrashedRank), "where ranks wait");
    assert!(verdict.evidence.contains(&"the same in group `ep`: rank 0".to_owned()));
    assert_eq!(diagnosis.groups.len(), 2);
}

#[test]
fn who_closed_and_ended_is_not_lost() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2).make(&[note(What::Close, 0)]);
    for rank in &mut group.ranks {
        rank.image.progress.phase = Phase::Closed;
        rank.image.life = Life::Gone;
    }
    assert_eq!(group.diagnosis().verdicts, []);
}

#[test]
fn a_dropped_group_is_left_where_others_still_call() {
    let mut group = waiting_for(2, 3);
    group.progress(2).phase = Phase::Dropped;
    for life in [Life::Running, Life::Gone] {
        group.ranks[2].image.life = life;
        let verdict = group.verdict();
        assert_eq!((verdict.class, &*verdict.ranks), (Class::Left, &[2][..]));
        assert!(verdict.sentence.contains("dropped the group"), "{}", verdict.sentence);
    }
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2).progress(1).phase = Phase::Dropped;
    assert_eq!(group.diagnosis().verdicts, [], "nobody waits for it");
}

/// Peers look between their calls whether the group has ended: nobody has come further then than who dropped it.
#[test]
fn who_drops_the_group_first_left_it() {
    let drop_at = |at: u64| {
        let mut group = Group::new("tp", 7, 3);
        group.steps(0..2);
        let dropped = group.progress(1);
        (dropped.phase, dropped.entered) = (Phase::Dropped, at);
        for rank in [0, 2] {
            let failed = group.progress(rank);
            (failed.phase, failed.entered) = (Phase::Failed, 5_000);
            failed.end = Some("rank 1 aborted the group: it was told to".to_owned());
        }
        group
    };
    let verdict = drop_at(4_000).verdict();
    assert_eq!((verdict.class, &*verdict.ranks), (Class::Left, &[1][..]));
    let wanted = "rank 1 dropped the group without a goodbye after call 14 (step 1), all_gather";
    assert!(verdict.sentence.contains(wanted), "{}", verdict.sentence);
    // Who drops it once it has ended for others did not end it; nor does one that does not say when.
    for late in [6_000, 0] {
        assert_eq!(drop_at(late).verdict().class, Class::Ended);
    }
    // Clocks of two nodes do not agree.
    let mut group = drop_at(4_000);
    for rank in &mut group.ranks {
        rank.image.about.nodes[1] = "elsewhere".to_owned();
    }
    assert_eq!(group.verdict().class, Class::Ended);
}

#[test]
fn an_error_that_nothing_explains_is_quoted() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2);
    group.ranks.iter_mut().for_each(|rank| rank.begin(&call(64, "")));
    let ends = ["rank 1 gave up", "out of memory", "rank 1 gave up"];
    for (rank, end) in group.ranks.iter_mut().zip(ends) {
        fail(rank, end);
    }
    let late = group.ranks[1].image.records.get_mut(&17).expect("it was made");
    late.at += 5 * SECOND;
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::Ended, vec![0, 1, 2]));
    assert!(verdict.sentence.contains("ranks 0 and 2 say: rank 1 gave up"), "{}", verdict.sentence);
    assert!(verdict.evidence.contains(&"rank 1 says: out of memory".to_owned()));
    let late = "rank 1 came to record 17 5.0 s after the others".to_owned();
    assert!(verdict.evidence.contains(&late), "{:?}", verdict.evidence);
}

#[test]
fn a_rank_that_was_late_is_named_after_all_gave_up() {
    let mut group = waiting_for(1, 4);
    for rank in &mut group.ranks {
        fail(rank, "deadline passed");
    }
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::NotArrived, vec![1]));
    assert!(verdict.sentence.contains("rank 1 had not arrived"), "{}", verdict.sentence);
    // One that failed inside its own last call was not late.
    group.progress(1).finished -= 1;
    assert_eq!(group.verdict().class, Class::Ended);
}
