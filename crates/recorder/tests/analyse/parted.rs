//! Histories that differ in a record: who, and in what.

use crossover_core::call::{Dtype, Mode, Op, ReduceOp};
use crossover_recorder::{Branch, Class, Life, Phase, What};

use crate::sim::{Entry, Group, call, fail, note, op, state};

fn first_middle_and_last(world: u32) -> [u32; 3] {
    [0, world / 2, world - 1]
}

#[test]
fn the_odd_rank_is_named_in_every_world_and_place() {
    for world in 3..=8 {
        for odd in first_middle_and_last(world) {
            let mut group = Group::new("tp", 7, world);
            group.steps(1..4).part(odd as usize, &call(4096, "m.rs:88"), &call(64, "m.rs:88"));
            let verdict = group.verdict();
            assert_eq!((verdict.class, verdict.ranks), (Class::SizeMismatch, vec![odd]));
            assert_eq!((verdict.number, verdict.seq), (Some(25), Some(22)));
        }
    }
}

#[test]
fn a_size_mismatch_in_words() {
    let mut group = Group::new("tp", 7, 4);
    group.steps(6..7).part(1, &call(4096, "m.rs:88"), &call(64, "m.rs:88"));
    let verdict = group.verdict();
    assert_eq!(
        verdict.sentence,
        "size mismatch in group `tp`, call 8 (step 6): rank 1 has all_reduce sum of 64 x f32 \
         (256B), ranks 0, 2 and 3 have all_reduce sum of 4096 x f32 (16KiB) at m.rs:88"
    );
    assert_eq!(verdict.step, Some(6));
    assert_eq!(verdict.site.as_deref(), Some("m.rs:88"));
    assert_eq!(verdict.fields, ["count"]);
    assert!(verdict.advice[0].contains("rank 1"), "{:?}", verdict.advice);
    assert_eq!(verdict.advice.len(), 1, "this engine notes its state already");
    let mut silent = Group::new("tp", 7, 4);
    silent.make(&[call(8, "")]).part(1, &call(4096, "m.rs:88"), &call(64, "m.rs:88"));
    assert!(silent.verdict().advice[1].contains("note its state"));
}

#[test]
fn without_a_majority_both_sides_are_named() {
    for (world, odd) in [(2, vec![1]), (4, vec![1, 3]), (4, vec![0, 1]), (6, vec![0, 2, 5])] {
        let mut group = Group::new("tp", 7, world);
        group.steps(0..2);
        for (at, rank) in group.ranks.iter_mut().enumerate() {
            rank.begin(&call(if odd.contains(&at) { 64 } else { 4096 }, ""));
        }
        let verdict = group.verdict();
        assert_eq!(verdict.class, Class::SizeMismatch);
        assert_eq!(verdict.ranks, (0..world).collect::<Vec<_>>());
        assert!(verdict.sentence.ends_with("neither side is a majority"), "{}", verdict.sentence);
    }
}

#[test]
fn of_two_ranks_the_past_tells_which_is_odd() {
    for odd in 0..2 {
        let mut group = Group::new("tp", 7, 2);
        group.steps(0..3);
        group.make(&[state(21), call(4096, "L0.attn")]);
        group.part(odd, &call(8192, "L0.mlp"), &call(8190, "L0.mlp"));
        let verdict = group.verdict();
        let usual = format!("as rank {} has now", 1 - odd);
        // Every step has another state: the context is told by the calls of earlier layers alone.
        let known = verdict.evidence.iter().any(|line| line.ends_with(&usual));
        assert!(!known, "the state differs from all before: {:?}", verdict.evidence);

        let mut group = Group::new("tp", 7, 2);
        group.steps(0..3);
        for layer in ["L0", "L1"] {
            group
                .make(&[call(4096, &format!("{layer}.attn")), call(8192, &format!("{layer}.mlp"))]);
        }
        group.part(odd, &call(4096, "L2.attn"), &call(4095, "L2.attn"));
        let verdict = group.verdict();
        let known = verdict.evidence.iter().any(|line| line.ends_with(&usual));
        assert!(known, "{:?}", verdict.evidence);
    }
}

#[test]
fn two_odd_ranks_that_differ_are_both_told() {
    let mut group = Group::new("tp", 7, 5);
    group.steps(0..1);
    for (at, rank) in group.ranks.iter_mut().enumerate() {
        rank.begin(&call(4096 + if at == 1 || at == 3 { at as u64 } else { 0 }, ""));
    }
    let verdict = group.verdict();
    assert_eq!(verdict.ranks, [1, 3]);
    for part in ["rank 1 has", "4097", "rank 3 has", "4099", "ranks 0, 2 and 4 have"] {
        assert!(verdict.sentence.contains(part), "{}", verdict.sentence);
    }
}

#[test]
fn arguments_are_named() {
    let cases: [(&str, Entry, Entry); 5] = [
        ("dtype", call(64, ""), Entry { dtype: Dtype::Bf16, ..call(64, "") }),
        ("reduce_op", call(64, ""), Entry { reduce_op: ReduceOp::Max, ..call(64, "") }),
        ("root", op(Op::Broadcast, 64, ""), Entry { root: 2, ..op(Op::Broadcast, 64, "") }),
        ("dtype count", call(64, ""), Entry { dtype: Dtype::Bf16, ..call(128, "") }),
        ("split or contract", call(64, ""), Entry { hidden: 1, ..call(64, "") }),
    ];
    for (fields, usual, other) in cases {
        let mut group = Group::new("tp", 7, 4);
        let verdict = group.steps(0..2).part(0, &usual, &other).verdict();
        assert_eq!((verdict.class, verdict.ranks), (Class::ArgumentMismatch, vec![0]));
        assert!(fields == verdict.fields.join(" ") || verdict.fields == [fields]);
    }
}

#[test]
fn another_algorithm_is_a_decision_and_no_mismatch() {
    let other = Entry { target: "host/two_shot".to_owned(), ..call(64, "L1") };
    let mut group = Group::new("tp", 7, 3);
    let verdict = group.steps(0..2).part(2, &call(64, "L1"), &other).verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::DecisionDivergence, vec![2]));
    let told = "rank 2 has all_reduce sum of 64 x f32 (256B) by host/two_shot, ranks 0 and 1 have \
                all_reduce sum of 64 x f32 (256B) by host/one_shot at L1";
    assert!(verdict.sentence.ends_with(told), "{}", verdict.sentence);
    // Another size has another algorithm: it is the size that matters.
    let other = Entry { count: 640, ..other };
    let mut group = Group::new("tp", 7, 3);
    let verdict = group.steps(0..2).part(2, &call(64, "L1"), &other).verdict();
    assert_eq!(verdict.class, Class::SizeMismatch);
}

#[test]
fn ways_through_the_program() {
    let captured = Entry { mode: Mode::Graph, ..call(64, "a") };
    let cases = [
        (Branch::DifferentPath, call(64, "a"), call(32, "b")),
        (Branch::DifferentPath, call(64, ""), op(Op::AllGather, 64, "")),
        (Branch::EagerVsGraph, call(64, "a"), captured),
        (Branch::EagerVsGraph, note(What::Replay, 8), call(64, "a")),
        (Branch::EagerVsGraph, call(64, "a"), note(What::Replay, 8)),
        (Branch::OtherGraph, note(What::Replay, 8), note(What::Replay, 16)),
    ];
    for (branch, usual, other) in cases {
        let mut group = Group::new("tp", 7, 4);
        let verdict = group.steps(0..2).part(3, &usual, &other).verdict();
        assert_eq!((verdict.class, verdict.branch), (Class::BranchDivergence, Some(branch)));
        assert_eq!(verdict.ranks, [3]);
    }
}

#[test]
fn drift_is_told_with_what_it_led_to() {
    let mut group = Group::new("tp", 7, 4);
    group.steps(5..6);
    (0..4).for_each(|rank| group.progress(rank).step = 6);
    group.part(1, &state(0x9f), &state(0x3c));
    group.make(&[call(4096, "L0")]);
    group.part(1, &op(Op::AllGather, 1024, "logits"), &op(Op::AllGather, 16, "logits"));
    let verdict = group.verdict();
    assert_eq!((verdict.class, &*verdict.ranks), (Class::StateDrift, &[1][..]));
    assert_eq!((verdict.step, &*verdict.fields), (Some(6), &["digest".to_owned()][..]));
    assert_eq!(verdict.advice[0], "look at what rank 1 did between step 5 and 6");
    let effect = verdict.effect.expect("the all-gather differs");
    assert_eq!((effect.class, effect.ranks), (Class::SizeMismatch, vec![1]));
    assert!(verdict.sentence.contains("; effect: size mismatch"), "{}", verdict.sentence);
    assert!(verdict.evidence.contains(&"policy, backends and version agree".to_owned()));
}

#[test]
fn drift_without_harm_yet_and_with_a_wait() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2).part(0, &state(1), &state(2)).make(&[call(64, "")]);
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.effect), (Class::StateDrift, None));
    group.ranks[1..].iter_mut().for_each(|rank| rank.begin(&call(64, "")));
    let effect = group.verdict().effect.expect("rank 0 is awaited");
    assert_eq!((effect.class, effect.ranks), (Class::NotArrived, vec![0]));
}

#[test]
fn configurations_come_before_what_they_led_to() {
    let other = Entry { target: "host/two_shot".to_owned(), ..call(64, "") };
    let mut group = Group::new("tp", 7, 4);
    group.steps(0..1).part(2, &call(64, ""), &other);
    group.ranks[2].image.about.policy = "p2".to_owned();
    let verdicts = group.diagnosis().verdicts;
    let classes: Vec<_> = verdicts.iter().map(|verdict| verdict.class).collect();
    assert_eq!(classes, [Class::ConfigDivergence, Class::DecisionDivergence]);
    assert_eq!((&*verdicts[0].ranks, &*verdicts[0].fields), (&[2][..], &["policy".to_owned()][..]));
    assert!(!verdicts[1].evidence.iter().any(|line| line.contains("agree")));
}

#[test]
fn a_goodbye_among_calls_is_leaving() {
    for (world, odd) in [(2, 0), (2, 1), (4, 0), (4, 3)] {
        let mut group = Group::new("tp", 7, world);
        group.steps(0..2).part(odd, &call(64, ""), &note(What::Close, 0));
        let verdict = group.verdict();
        let told = format!("in group `tp` rank {odd} closed the group, while rank");
        assert!(verdict.sentence.starts_with(&told), "{}", verdict.sentence);
        assert_eq!((verdict.class, verdict.ranks), (Class::Left, vec![odd as u32]));
    }
    // Where most say goodbye, the one that calls is odd.
    let mut group = Group::new("tp", 7, 4);
    let verdict = group.steps(0..2).part(1, &note(What::Close, 0), &call(64, "")).verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::BranchDivergence, vec![1]));
}

#[test]
fn goodbyes_after_an_error_are_no_cause() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..2).part(1, &call(64, ""), &note(What::Close, 0));
    // It left by itself, and the others failed for it.
    [0, 2].iter().for_each(|rank| fail(&mut group.ranks[*rank], "rank 1 was lost"));
    assert_eq!(group.verdict().class, Class::Left);
    fail(&mut group.ranks[1], "out of memory");
    assert_eq!(group.verdict().class, Class::Ended);
    group.ranks[2].image.life = Life::Gone;
    assert_eq!(group.verdict().class, Class::Ended, "it failed before it ended");
    let crashed = &mut group.ranks[2].image.progress;
    (crashed.phase, crashed.end) = (Phase::Open, None);
    assert_eq!(group.verdict().class, Class::CrashedRank);
}

#[test]
fn a_failed_group_keeps_its_cause() {
    let mut group = Group::new("tp", 7, 4);
    group.steps(0..2).part(3, &call(64, ""), &call(32, ""));
    for rank in &mut group.ranks {
        fail(rank, "arguments differ");
        rank.image.life = Life::Gone;
    }
    let verdict = group.verdict();
    assert_eq!((verdict.class, verdict.ranks), (Class::SizeMismatch, vec![3]));
}
