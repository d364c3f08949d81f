//! Hosts have enqueued all, or some have not, and kernels tell for whom they wait.

use crossover_recorder::{
    Class, DeviceWait, Image, Life, Phase, Verdict, analyse_twice, text, timeline,
};
use proptest::prelude::*;

use crate::sim::{Group, SECOND, TICK, call, fail, of_one_job, only};

/// Two steps, and one more call, which all enqueue.
fn enqueued(world: u32) -> Group {
    let mut group = Group::new("tp", 7, world);
    group.steps(0..2).make(&[call(64, "m.rs:9")]);
    group.ranks.iter_mut().for_each(|rank| rank.image.about.device = "GPU-1".to_owned());
    group
}

/// The rank's device has been waiting for 3.1 s.
fn waits(group: &mut Group, rank: u32, call: u64, awaited: &[u32]) {
    let progress = group.progress(rank as usize);
    let since = progress.taken - 31 * SECOND / 10;
    let (awaited, what) = (awaited.to_vec(), "data".to_owned());
    progress.device = Some(DeviceWait { call, awaited, what, since });
}

/// All but `odd` wait for it.
fn all_wait_for(group: &mut Group, odd: u32) {
    let world = group.ranks.len() as u32;
    (0..world).filter(|rank| *rank != odd).for_each(|rank| waits(group, rank, 16, &[odd]));
}

fn told(verdict: &Verdict) -> (Class, &[u32], Option<u64>) {
    (verdict.class, &verdict.ranks, verdict.age_ms)
}

#[test]
fn devices_that_do_not_wait_are_well() {
    for world in 2..=8 {
        assert_eq!(enqueued(world).diagnosis().verdicts, []);
    }
}

#[test]
fn a_device_that_has_not_come_is_named() {
    for world in 2..=8 {
        for odd in 0..world {
            let mut group = enqueued(world);
            all_wait_for(&mut group, odd);
            let verdict = group.verdict();
            assert_eq!(told(&verdict), (Class::DeviceBehind, &[odd][..], Some(3100)));
            let debugger = format!("`cuda-gdb -p {}`", 100 + odd);
            assert!(verdict.advice[0].contains(&debugger), "{:?}", verdict.advice);
            assert_eq!(verdict.advice.iter().filter(|a| a.contains("cuda-gdb")).count(), 1);
        }
    }
}

#[test]
fn it_is_said_as_an_operator_reads_it() {
    let mut group = enqueued(4);
    all_wait_for(&mut group, 2);
    let verdict = group.verdict();
    assert_eq!(
        verdict.sentence,
        "in group `tp` the device of rank 2 has not come to device call 16: the devices of ranks \
         0, 1 and 3 wait for it, for 3.1 s"
    );
    assert_eq!(
        verdict.evidence[..2],
        [
            "the devices of ranks 0, 1 and 3 wait for rank 2, data, for 3.1 s, device call 16",
            "all ranks have enqueued what is up to call 15 (step 1), all_reduce sum of 64 x f32 \
             (256B) by host/one_shot at m.rs:9: it is that or one before",
        ]
    );
    assert!(verdict.evidence[2].starts_with("the device of rank 2 waits for nobody"));
    let report = text(&group.diagnosis());
    let line = "  rank 3: its device waits for rank 2, data, for 3.1 s, device call 16\n";
    assert!(report.contains(line), "{report}");
    let json = serde_json::to_value(group.diagnosis()).expect("all of it is plain data");
    assert_eq!(json["verdicts"][0]["class"], "device_behind");
    assert_eq!(
        json["groups"][0]["ranks"][0]["device"],
        serde_json::json!({ "call": 16, "awaited": [2], "what": "data", "age_ms": 3100 })
    );
    assert!(json["groups"][0]["ranks"][2]["device"].is_null());
}

#[test]
fn who_waits_itself_is_not_the_cause() {
    // Rank 0 waits for rank 1, and that for rank 2: also where the earlier call's count wrapped.
    for (first, later) in [(16, 17), (u64::from(u32::MAX), 0)] {
        let mut group = enqueued(3);
        waits(&mut group, 0, later, &[1]);
        waits(&mut group, 1, first, &[2]);
        let verdict = group.verdict();
        assert_eq!(told(&verdict), (Class::DeviceBehind, &[2][..], Some(3100)));
        assert!(verdict.sentence.contains(&format!("device call {first}:")), "{verdict:?}");
        let apart = verdict.evidence.iter().find(|line| line.contains("at different calls"));
        let apart = apart.expect("devices are at different calls");
        assert!(apart.contains(&format!("rank 0 at device call {later}")), "{apart}");
    }
}

#[test]
fn devices_that_wait_for_one_another_have_lost_what_was_sent() {
    for world in 2..=8 {
        let mut group = enqueued(world);
        (0..world).for_each(|rank| waits(&mut group, rank, 16, &[(rank + 1) % world]));
        let verdict = group.verdict();
        let all: Vec<u32> = (0..world).collect();
        assert_eq!(told(&verdict), (Class::StuckTransport, &*all, Some(3100)));
        assert!(verdict.sentence.contains("rank 0 <- rank 1"), "{}", verdict.sentence);
        assert!(verdict.advice.iter().any(|line| line.contains("xid")), "{:?}", verdict.advice);
    }
    // Of those that are at other calls only what came too late is odd.
    let mut group = enqueued(3);
    waits(&mut group, 0, 17, &[1]);
    waits(&mut group, 1, 16, &[0, 2]);
    waits(&mut group, 2, 16, &[1]);
    let verdict = group.verdict();
    let odd = "what does not come: rank 1 <- rank 0, rank 1 <- rank 2, rank 2 <- rank 1";
    assert!(verdict.sentence.ends_with(odd), "{}", verdict.sentence);
    assert!(verdict.evidence.iter().any(|line| line.contains("rank 0 at device call 17")));
}

#[test]
fn a_rank_that_has_not_enqueued_is_named_as_before() {
    for (world, odd) in [(2, 0), (2, 1), (4, 0), (4, 3), (8, 5)] {
        let mut group = enqueued(world);
        let ahead = (0..world).filter(|rank| *rank != odd);
        ahead.for_each(|rank| group.ranks[rank as usize].make(&call(64, "m.rs:10")));
        all_wait_for(&mut group, odd);
        let verdict = group.verdict();
        assert_eq!((verdict.class, &*verdict.ranks), (Class::NotArrived, &[odd][..]));
        let line = format!("for rank {odd}, data, for 3.1 s, device call 16");
        assert!(verdict.evidence.iter().any(|e| e.contains(&line)), "{:?}", verdict.evidence);
    }
}

#[test]
fn a_host_that_its_own_device_holds_up_is_not_blamed() {
    // Rank 0 waits for its device before it goes on; rank 2's device is what all wait for.
    let mut group = enqueued(3);
    group.ranks[1..].iter_mut().for_each(|rank| rank.make(&call(64, "m.rs:10")));
    all_wait_for(&mut group, 2);
    assert_eq!(told(&group.verdict()), (Class::DeviceBehind, &[2][..], Some(3100)));
    // Of two that are late with their hosts, the one that the other's device waits for.
    let mut group = enqueued(3);
    group.ranks[1].make(&call(64, "m.rs:10"));
    all_wait_for(&mut group, 2);
    let verdict = group.verdict();
    assert_eq!((verdict.class, &*verdict.ranks), (Class::NotArrived, &[2][..]));
}

#[test]
fn a_lost_rank_stays_the_cause() {
    for (life, class) in [(Life::Gone, Class::CrashedRank), (Life::Stopped, Class::StoppedRank)] {
        let mut group = enqueued(4);
        all_wait_for(&mut group, 3);
        group.ranks[3].image.life = life;
        let verdict = group.verdict();
        assert_eq!((verdict.class, &*verdict.ranks), (class, &[3][..]));
        let line =
            "the devices of ranks 0, 1 and 2 wait for rank 3, data, for 3.1 s, device call 16";
        assert!(verdict.evidence.iter().any(|e| e == line), "{:?}", verdict.evidence);
    }
}

#[test]
fn who_dropped_the_group_with_work_left_is_named() {
    let mut group = enqueued(3);
    all_wait_for(&mut group, 1);
    group.progress(1).phase = Phase::Dropped;
    let verdict = group.verdict();
    assert_eq!((verdict.class, &*verdict.ranks), (Class::Left, &[1][..]));
    assert!(verdict.sentence.contains("rank 1 dropped the group"), "{}", verdict.sentence);
}

#[test]
fn histories_that_differ_come_first() {
    let mut group = enqueued(4);
    for (rank, count) in [(0, 64), (1, 64), (2, 32), (3, 64)] {
        group.ranks[rank].make(&call(count, "m.rs:10"));
    }
    all_wait_for(&mut group, 2);
    let verdict = group.verdict();
    assert_eq!((verdict.class, &*verdict.ranks), (Class::SizeMismatch, &[2][..]));
    assert!(verdict.evidence.iter().any(|line| line.contains("wait for rank 2, data")));
}

#[test]
fn groups_that_failed_are_not_judged_by_kernels_that_give_up() {
    let mut group = enqueued(3);
    all_wait_for(&mut group, 1);
    fail(&mut group.ranks[0], "it took too long");
    assert_eq!(group.verdict().class, Class::Ended);
}

#[test]
fn who_was_not_seen_or_not_watched_is_not_judged() {
    let mut group = enqueued(3);
    all_wait_for(&mut group, 1);
    group.progress(1).beat = 0;
    let diagnosis = group.diagnosis();
    assert_eq!(diagnosis.verdicts, []);
    let note = "in `tp` the devices of ranks 0 and 2 wait for rank 1, whose watchdog does not tell";
    assert!(diagnosis.notes.iter().any(|n| n.starts_with(note)), "{:?}", diagnosis.notes);
    group.ranks.remove(1);
    let diagnosis = group.diagnosis();
    assert_eq!(diagnosis.verdicts, []);
    let note = "in `tp` the devices of ranks 0 and 2 wait for rank 1, which was not seen";
    assert!(diagnosis.notes.iter().any(|n| n == note), "{:?}", diagnosis.notes);
}

#[test]
fn what_a_damaged_ring_claims_of_its_device_breaks_nothing() {
    let mut group = enqueued(3);
    waits(&mut group, 0, u64::MAX, &[0, 63]);
    waits(&mut group, 1, 5, &[]);
    group.progress(1).device.as_mut().expect("it waits").since = u64::MAX;
    assert_eq!(group.diagnosis().verdicts, []);
    assert!(
        text(&group.diagnosis()).contains("waits for a rank that is not known, data, for 0 ms")
    );
}

fn later(group: &Group) -> Vec<Image> {
    let mut images = group.images();
    images.iter_mut().for_each(|image| image.progress.taken += SECOND / 2);
    images.iter_mut().for_each(|image| image.progress.beat += SECOND / 2);
    images
}

#[test]
fn a_wait_in_one_call_over_two_looks_is_a_hang() {
    let mut group = enqueued(3);
    all_wait_for(&mut group, 1);
    let before = group.images();
    // Hosts may enqueue more meanwhile, and it is learnt of one more rank that it is awaited.
    group.make(&[call(64, "m.rs:11")]);
    let hung = only(analyse_twice(&before, &later(&group)).remove(0));
    assert_eq!((hung.class, &*hung.ranks), (Class::DeviceBehind, &[1][..]));
    let both = "devices wait in the same call in two looks, 500 ms apart".to_owned();
    assert!(hung.evidence.contains(&both), "{:?}", hung.evidence);

    let mut group = enqueued(2);
    waits(&mut group, 0, 16, &[1]);
    waits(&mut group, 1, 16, &[0]);
    let hung = only(analyse_twice(&group.images(), &later(&group)).remove(0));
    assert_eq!(hung.class, Class::StuckTransport);
}

#[test]
fn a_wait_whose_call_moved_is_slow() {
    let mut group = enqueued(3);
    all_wait_for(&mut group, 1);
    let before = group.images();
    (0..3).filter(|rank| *rank != 1).for_each(|rank| waits(&mut group, rank, 17, &[1]));
    let slow = only(analyse_twice(&before, &later(&group)).remove(0));
    assert_eq!((slow.class, &*slow.ranks), (Class::SlowTransport, &[1][..]));
    assert!(slow.sentence.contains("the device of rank 1 came to a call 3.1 s or more after"));

    // The same of links, and a wait of a moment is no news.
    let circle = |call: u64| {
        let mut group = enqueued(2);
        waits(&mut group, 0, call, &[1]);
        waits(&mut group, 1, call, &[0]);
        group
    };
    let slow = only(analyse_twice(&circle(16).images(), &later(&circle(17))).remove(0));
    assert_eq!((slow.class, &*slow.ranks), (Class::SlowTransport, &[0, 1][..]));
    let mut young = circle(16).images();
    for image in &mut young {
        image.progress.device.as_mut().expect("it waits").since = image.progress.taken - TICK;
    }
    assert_eq!(analyse_twice(&young, &later(&circle(17))).remove(0).verdicts, []);
    // A group that was ended has not come to its end.
    let mut ended = circle(16);
    for rank in &mut ended.ranks {
        fail(rank, "aborted");
        rank.image.progress.device = None;
    }
    let verdict = only(analyse_twice(&circle(16).images(), &later(&ended)).remove(0));
    assert_eq!(verdict.class, Class::Ended);
}

#[test]
fn of_copies_in_files_the_wait_is_as_old_as_the_copy() {
    let mut group = enqueued(3);
    all_wait_for(&mut group, 0);
    for rank in &mut group.ranks {
        rank.image.life = Life::Unknown;
        rank.image.progress.beat = rank.image.progress.taken;
        rank.image.progress.taken += 86_400 * SECOND;
    }
    let verdict = only(of_one_job(&group.images()));
    assert_eq!(told(&verdict), (Class::DeviceBehind, &[0][..], Some(3100)));
}

/// Two processes have enqueued calls of two groups, each in another order on its device.
fn crossed() -> Vec<Image> {
    let mut one = enqueued(2);
    waits(&mut one, 0, 16, &[1]);
    let mut other = Group::new("pp", 8, 2);
    other.steps(0..2);
    waits(&mut other, 1, 15, &[0]);
    [one.images(), other.images()].concat()
}

#[test]
fn devices_that_wait_in_two_groups_for_one_another_are_a_deadlock() {
    let verdict = only(of_one_job(&crossed()));
    assert_eq!((verdict.class, verdict.age_ms), (Class::CrossGroupDeadlock, Some(3100)));
    for part in [
        "rank 0 of `tp` waits with its device, in device call 16, for rank 1",
        "rank 1 of `pp` waits with its device, in device call 15, for rank 0",
    ] {
        assert!(verdict.sentence.contains(part), "{}", verdict.sentence);
    }
    let mut after = crossed();
    after.iter_mut().for_each(|image| image.progress.taken += SECOND / 2);
    assert_eq!(only(analyse_twice(&crossed(), &after).remove(0)).class, Class::CrossGroupDeadlock);
}

#[test]
fn a_device_that_is_held_up_in_another_group_is_said_to_be() {
    // Rank 1 of `tp` is rank 1 of `pp`, where it waits for rank 0, which is another process.
    let mut one = enqueued(2);
    waits(&mut one, 0, 16, &[1]);
    let mut other = Group::of("pp", 8, &[300, 101]);
    other.steps(0..2);
    waits(&mut other, 1, 15, &[0]);
    let verdicts = of_one_job(&[one.images(), other.images()].concat()).verdicts;
    let told: Vec<_> = verdicts.iter().map(|v| (v.class, &*v.tag, &*v.ranks)).collect();
    assert_eq!(
        told,
        [(Class::DeviceBehind, "pp", &[0][..]), (Class::DeviceBehind, "tp", &[1][..])]
    );
    let held_up =
        "rank 1 is rank 1 of `pp` and waits with its device, in device call 15, for rank 0";
    assert!(verdicts[1].evidence.iter().any(|line| line == held_up), "{:?}", verdicts[1].evidence);
}

#[test]
fn a_host_that_is_still_in_the_call_may_not_have_launched_it() {
    let mut group = enqueued(4);
    all_wait_for(&mut group, 1);
    group.progress(1).finished -= 1;
    let verdict = group.verdict();
    assert_eq!((verdict.class, &*verdict.ranks), (Class::DeviceBehind, &[1][..]));
    assert!(verdict.evidence.contains(&"rank 1 has not come back from it".to_owned()));
    assert!(verdict.advice[0].contains("py-spy dump --pid 101"), "{:?}", verdict.advice);
}

proptest::proptest! {
    /// Everyone waits for somebody nearer to the one that has not come: it is named, wherever it is.
    #[test]
    fn chains_of_waits_lead_to_their_end(
        (world, odd) in (2..=8_u32).prop_flat_map(|world| (Just(world), 0..world)),
        picks in proptest::collection::vec((0..8_u32, 0..3_u32), 8),
    ) {
        let mut group = enqueued(world);
        for distance in 1..world {
            let (pick, later) = picks[distance as usize];
            let nearer = (odd + pick % distance) % world;
            let call = u64::from(u32::MAX.wrapping_add(distance * later));
            waits(&mut group, (odd + distance) % world, call, &[nearer]);
        }
        let verdict = group.verdict();
        prop_assert_eq!((verdict.class, verdict.ranks), (Class::DeviceBehind, vec![odd]));
    }

    /// Whatever rings claim of their devices can be judged and shown, and blames no rank that waits.
    #[test]
    fn any_waits_are_survived(
        world in 1..=8_u32,
        told in proptest::collection::vec(
            proptest::option::of((any::<u64>(), proptest::collection::vec(0..70_u32, 0..5), any::<u64>())),
            8,
        ),
    ) {
        let mut group = enqueued(world);
        for (rank, wait) in group.ranks.iter_mut().zip(told) {
            rank.image.progress.device = wait.map(|(call, awaited, since)| {
                DeviceWait { call, awaited, what: "data".to_owned(), since }
            });
        }
        let images = group.images();
        let diagnosis = of_one_job(&images);
        text(&diagnosis);
        timeline(&images, &diagnosis);
        let behind = diagnosis.verdicts.iter().filter(|v| v.class == Class::DeviceBehind);
        for rank in behind.flat_map(|verdict| &verdict.ranks) {
            prop_assert!(images[*rank as usize].progress.device.is_none());
        }
        analyse_twice(&images, &later(&group));
    }
}
