//! What belongs together is judged; what is missing or left over is named.

use crossover_recorder::{Class, Image, Life, Phase, analyse};

use crate::sim::{BORN, Group, SECOND, call, of_one_job, process};

fn healthy(tag: &str, number: u64, world: u32) -> Group {
    let mut group = Group::new(tag, number, world);
    group.steps(0..2);
    group
}

/// The same group as if formed that much later, by processes that were started then.
fn shift(group: &mut Group, seconds: u64, pids_from: u32) {
    for (rank, pid) in group.ranks.iter_mut().zip(pids_from..) {
        rank.image.records.values_mut().for_each(|record| record.at += seconds * SECOND);
        rank.image.progress.born += seconds * SECOND;
        rank.image.progress.beat += seconds * SECOND;
        rank.image.progress.taken += seconds * SECOND;
        rank.image.about.process = process(pid);
        rank.image.about.process.started += seconds * 100;
    }
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(analyse(&[]), []);
    let mut group = Group::new("tp", 7, 3);
    assert_eq!(group.diagnosis().verdicts, [], "no call yet");
    group.progress(0).phase = Phase::Closing;
    assert_eq!(group.diagnosis().verdicts, []);
}

#[test]
fn jobs_are_judged_apart() {
    let one = healthy("tp", 7, 2);
    let mut other = healthy("tp", 7, 2);
    other.part(1, &call(64, ""), &call(32, ""));
    other.ranks.iter_mut().for_each(|rank| rank.image.about.job = "train".to_owned());
    let found = analyse(&[other.images(), one.images()].concat());
    let told: Vec<_> = found.iter().map(|d| (&*d.job, d.verdicts.len())).collect();
    assert_eq!(told, [("serve", 0), ("train", 1)]);
}

#[test]
fn missing_rings_are_named_and_not_judged() {
    let mut group = healthy("tp", 7, 4);
    for rank in &mut group.ranks {
        rank.image.about.nodes[3] = "node-b".to_owned();
    }
    group.ranks.truncate(2);
    let diagnosis = group.diagnosis();
    assert_eq!(diagnosis.verdicts, []);
    let other =
        "rank 3 of `tp` (host:103 on node node-b) was not seen: no ring of that node is here";
    let of_copies = "rank 2 of `tp` (host:102 on node node-a) was not seen: no copy of its ring is here \
                     that can be read";
    assert_eq!(diagnosis.notes, [of_copies, other]);
    for rank in &mut group.ranks {
        rank.image.source = format!("/dev/shm/crossover.serve.7.{}", rank.image.about.rank);
    }
    let of_living = "rank 2 of `tp` (host:102 on node node-a) was not seen: it has closed the group, or \
                     its container does not share the folder of rings with the others";
    assert_eq!(group.diagnosis().notes, [of_living, other]);
    let seen: Vec<bool> = diagnosis.groups[0].ranks.iter().map(|rank| rank.seen).collect();
    assert_eq!(seen, [true, true, false, false]);
}

#[test]
fn rings_of_an_earlier_attempt_or_boot_are_stale() {
    let mut old = healthy("tp", 7, 3);
    old.part(1, &call(64, ""), &call(32, ""));
    let mut new = healthy("tp", 8, 3);
    new.ranks.iter_mut().for_each(|rank| rank.image.about.attempt = 1);
    let diagnosis = of_one_job(&[old.images(), new.images()].concat());
    assert_eq!(diagnosis.verdicts, []);
    assert_eq!(diagnosis.notes.len(), 3);
    assert!(
        diagnosis.notes[1].starts_with("tp.1.ring (rank 1 of `tp`) is stale: it is of attempt 0")
    );

    let mut new = healthy("tp", 8, 3);
    shift(&mut new, 3600, 100);
    new.ranks.iter_mut().for_each(|rank| rank.image.about.process.boot = "boot-2".to_owned());
    let diagnosis = of_one_job(&[new.images(), old.images()].concat());
    assert_eq!(diagnosis.verdicts, []);
    assert!(diagnosis.notes[0].ends_with("node node-a has been started anew since"));
}

#[test]
fn a_group_whose_place_another_has_taken_is_stale() {
    let mut old = healthy("tp", 7, 3);
    old.part(1, &call(64, ""), &call(32, ""));
    old.ranks.iter_mut().for_each(|rank| rank.image.life = Life::Gone);
    let mut new = healthy("tp", 8, 3);
    shift(&mut new, 3600, 200);
    let both = [old.images(), new.images()].concat();
    let diagnosis = of_one_job(&both);
    assert_eq!(diagnosis.verdicts, []);
    assert_eq!(
        diagnosis.notes,
        ["ranks 0, 1 and 2 of `tp` (group 7) have stale rings: a newer `tp` has taken its place"]
    );
    // It is not, while it is alive: replicas have groups of the same name.
    let alive: Vec<Image> =
        both.into_iter().map(|image| Image { life: Life::Running, ..image }).collect();
    assert_eq!(of_one_job(&alive).verdicts[0].class, Class::SizeMismatch);
}

#[test]
fn a_replica_that_died_is_not_taken_for_stale() {
    let mut dead = healthy("tp", 7, 3);
    dead.ranks.iter_mut().for_each(|rank| rank.image.life = Life::Gone);
    // Side by side for an hour, of which the living one's ring still has the last seconds.
    let mut alive = healthy("tp", 8, 3);
    shift(&mut alive, 0, 200);
    for rank in &mut alive.ranks {
        rank.image.records.values_mut().for_each(|record| record.at += 3600 * SECOND);
    }
    for rank in &mut dead.ranks {
        let last = rank.image.records.values_mut().next_back().expect("there are records");
        last.at += 1800 * SECOND;
    }
    let images = [dead.images(), alive.images()].concat();
    let diagnosis = of_one_job(&images);
    let told: Vec<_> = diagnosis.verdicts.iter().map(|v| (v.class, v.group)).collect();
    assert_eq!(told, [(Class::CrashedRank, 7)], "{:?}", diagnosis.notes);
}

#[test]
fn of_two_images_of_a_rank_the_newer_counts() {
    let group = healthy("tp", 7, 2);
    let mut images = group.images();
    let mut old = images[1].clone();
    old.progress = crossover_recorder::Progress { taken: BORN, ..old.progress };
    old.records.clear();
    for at in [0, 2] {
        images.insert(at, old.clone());
    }
    let diagnosis = of_one_job(&images);
    assert_eq!(diagnosis.verdicts, []);
    assert_eq!(diagnosis.notes.len(), 2);
}
