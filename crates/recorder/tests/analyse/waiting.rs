//! Histories agree and ranks wait: for whom, since when, and does anything move?

use crossover_recorder::{Class, Image, Phase, analyse_twice};
use std::time::Duration;

use crate::sim::{BORN, Group, SECOND, TICK, call, of_one_job, only, state};

fn begin(group: &mut Group, ranks: &[usize]) {
    ranks.iter().for_each(|rank| group.ranks[*rank].begin(&call(64, "m.rs:9")));
}

#[test]
fn who_has_not_arrived_is_named_with_the_age_of_the_wait() {
    let mut group = Group::new("tp", 7, 4);
    begin(group.steps(0..2), &[0, 2, 3]);
    let verdict = group.verdict();
    assert_eq!((verdict.class, &*verdict.ranks), (Class::NotArrived, &[1][..]));
    assert_eq!((verdict.number, verdict.age_ms), (Some(17), Some(59_999)));
    assert_eq!(
        verdict.sentence,
        "in group `tp` rank 1 has not arrived at call 15 (step 1), all_reduce sum of 64 x f32 \
         (256B) by host/one_shot at m.rs:9: ranks 0, 2 and 3 wait there for 59.9 s"
    );
    assert!(verdict.advice[0].contains("py-spy dump --pid 101"), "{:?}", verdict.advice);
    assert!(
        verdict.evidence[0].contains("rank 1 came back from call 14"),
        "{:?}",
        verdict.evidence
    );
}

#[test]
fn calls_on_devices_come_back_before_they_are_done() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2);
    group.ranks[..2].iter_mut().for_each(|rank| rank.make(&call(64, "")));
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::NotArrived, vec![2]));
    assert!(verdict.sentence.contains("have made it for"), "{}", verdict.sentence);
}

#[test]
fn a_note_that_others_have_not_made_yet_keeps_nobody_waiting() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2).ranks[0].make(&state(9));
    assert_eq!(group.diagnosis().verdicts, []);
    // Nor is a note what ranks wait in.
    begin(&mut group, &[0]);
    let verdict = group.verdict();
    assert_eq!((verdict.ranks, verdict.number), (vec![1, 2], Some(18)));
}

#[test]
fn young_waits_are_no_news() {
    let mut group = Group::new("tp", 7, 3);
    begin(group.steps(0..2), &[0, 2]);
    (0..3).for_each(|rank| group.progress(rank).taken = BORN + 40 * TICK);
    let diagnosis = group.diagnosis();
    assert_eq!(diagnosis.verdicts[0].age_ms, Some(0));
    assert_eq!(diagnosis.patient(Duration::from_millis(1)).verdicts, []);
}

#[test]
fn copies_in_files_are_as_old_as_their_last_sign_of_life() {
    let mut group = Group::new("tp", 7, 3);
    begin(group.steps(0..2), &[0, 2]);
    for rank in &mut group.ranks {
        rank.image.life = crossover_recorder::Life::Unknown;
        rank.image.progress.beat = BORN + 20 * SECOND;
        rank.image.progress.taken = BORN + 86_400 * SECOND;
    }
    group.progress(1).beat = BORN + 5 * SECOND;
    let verdict = group.verdict();
    assert_eq!((&*verdict.ranks, verdict.age_ms), (&[1][..], Some(19_999)));
    let quiet = "rank 1 gave no sign of life in the last 15.0 s".to_owned();
    assert!(verdict.evidence.contains(&quiet), "{:?}", verdict.evidence);
}

#[test]
fn all_are_there_and_it_does_not_end() {
    let mut group = Group::new("tp", 7, 3);
    begin(group.steps(0..2), &[0, 1, 2]);
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.number), (Class::StuckTransport, Some(17)));
    assert_eq!(verdict.ranks, [0, 1, 2]);
    // Some came back already.
    group.progress(1).finished = 17;
    assert_eq!(group.verdict().ranks, [0, 2]);
}

#[test]
fn with_a_ring_missing_it_is_not_known_whether_all_are_there() {
    let mut group = Group::new("tp", 7, 3);
    begin(group.steps(0..2), &[0, 1, 2]);
    group.ranks.remove(1);
    let diagnosis = group.diagnosis();
    assert_eq!(diagnosis.verdicts, []);
    assert!(
        diagnosis.notes.iter().any(|n| n.contains("whether rank 1 came to theirs is not known"))
    );
}

#[test]
fn two_looks_tell_a_hang_from_a_busy_group() {
    let mut group = Group::new("tp", 7, 3);
    begin(group.steps(0..2), &[0, 1, 2]);
    let before = group.images();
    let hung = only(analyse_twice(&before, &later(&group)).remove(0));
    assert_eq!(hung.class, Class::StuckTransport);
    assert!(hung.evidence.contains(&"nothing moved in 500 ms between two looks".to_owned()));

    // It moved on, and is in another call.
    (0..3).for_each(|rank| group.progress(rank).finished = 17);
    begin(&mut group, &[0, 1, 2]);
    let slow = only(analyse_twice(&before, &later(&group)).remove(0));
    assert_eq!((slow.class, slow.number), (Class::SlowTransport, Some(17)));
    // Calls that fail come back as well.
    let mut failed = later(&group);
    failed.iter_mut().for_each(|image| {
        image.progress.finished = image.progress.issued;
        image.progress.phase = Phase::Failed;
        image.progress.end = Some("it took too long".to_owned());
    });
    assert_eq!(only(analyse_twice(&before, &failed).remove(0)).class, Class::Ended);
    // After a moment, which is no news.
    let young: Vec<Image> = before.into_iter().map(soon).collect();
    assert_eq!(analyse_twice(&young, &later(&group)).remove(0).verdicts, []);
}

fn later(group: &Group) -> Vec<Image> {
    let mut images = group.images();
    images.iter_mut().for_each(|image| image.progress.taken += SECOND / 2);
    images
}

fn soon(mut image: Image) -> Image {
    image.progress.taken = BORN + 40 * TICK;
    image
}

#[test]
fn a_late_rank_that_came_is_no_verdict_of_two_looks() {
    let mut group = Group::new("tp", 7, 3);
    begin(group.steps(0..2), &[0, 1]);
    let before = group.images();
    begin(&mut group, &[2]);
    (0..3).for_each(|rank| group.progress(rank).finished = 17);
    assert_eq!(analyse_twice(&before, &group.images()).remove(0).verdicts, []);
}

/// Groups of two processes each, in a ring of processes: everyone waits for the next.
fn circle(processes: u32) -> Vec<Group> {
    let group = |at: u32| {
        let tag = format!("g{at}");
        let mut group = Group::of(&tag, u64::from(at) + 1, &[at, (at + 1) % processes]);
        begin(group.steps(0..1), &[0]);
        group
    };
    (0..processes).map(group).collect()
}

fn images(groups: &[Group]) -> Vec<Image> {
    groups.iter().flat_map(Group::images).collect()
}

#[test]
fn circles_of_groups_are_one_deadlock() {
    for processes in 2..=4 {
        let groups = circle(processes);
        let verdict = only(of_one_job(&images(&groups)));
        assert_eq!((verdict.class, &*verdict.ranks), (Class::CrossGroupDeadlock, &[0, 1][..]));
        for at in 0..processes {
            let part = format!("rank 0 of `g{at}` waits in call 8 for rank 1");
            assert!(verdict.sentence.contains(&part), "{}", verdict.sentence);
            let same = format!("host:{at} is rank ");
            assert!(verdict.evidence.iter().any(|line| line.starts_with(&same)));
        }
        // A circle that is not closed is a chain, and its end is the cause.
        let groups = &groups[..processes as usize - 1];
        let verdicts = of_one_job(&images(groups)).verdicts;
        assert!(verdicts.iter().all(|verdict| verdict.class == Class::NotArrived));
        assert_eq!(verdicts.len(), groups.len());
        assert_eq!(verdicts[0].tag, format!("g{}", processes - 2), "the end of the chain first");
        for follower in &verdicts[1..] {
            let told = follower.evidence.iter().any(|line| line.contains("rank 1 is rank 0 of"));
            assert!(told, "{:?}", follower.evidence);
        }
    }
}

#[test]
fn threads_of_one_process_are_no_circle() {
    // One process has all ranks: that it is waited for and waits says nothing.
    let mut group = Group::of("tp", 7, &[100, 100, 100]);
    begin(group.steps(0..2), &[0, 1]);
    let verdict = group.verdict();
    assert_eq!((verdict.class, &*verdict.ranks), (Class::NotArrived, &[2][..]));
    let mut other = Group::of("pp", 8, &[100, 100]);
    begin(other.steps(0..2), &[1]);
    let verdicts = of_one_job(&images(&[group, other])).verdicts;
    let told: Vec<_> = verdicts.iter().map(|v| (v.class, &*v.tag, &*v.ranks)).collect();
    assert_eq!(told, [(Class::NotArrived, "pp", &[0][..]), (Class::NotArrived, "tp", &[2][..])]);
    let elsewhere = |line: &String| line.contains("and waits");
    assert!(!verdicts.iter().any(|verdict| verdict.evidence.iter().any(elsewhere)));
}

#[test]
fn who_waits_for_a_circle_is_not_in_it() {
    let mut groups = circle(2);
    let mut outside = Group::of("out", 9, &[50, 0]);
    begin(outside.steps(0..1), &[0]);
    groups.push(outside);
    let verdicts = of_one_job(&images(&groups)).verdicts;
    let told: Vec<_> = verdicts.iter().map(|v| (v.class, &*v.tag)).collect();
    assert_eq!(told, [(Class::CrossGroupDeadlock, "g0"), (Class::NotArrived, "out")]);
}
