//! What people and programs read.

use crossover_recorder::{Life, text};

use crate::sim::{Group, call, fail};

#[test]
fn as_an_operator_reads_it() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(6..7).part(1, &call(4096, "m.rs:88"), &call(64, "m.rs:88"));
    fail(&mut group.ranks[0], "sizes differ\u{1b}[2J\nsecond line");
    group.ranks[2].image.life = Life::Gone;
    group.ranks.remove(2);
    let report = text(&group.diagnosis());
    let expected = "\
job serve

size_mismatch: size mismatch in group `tp`, call 8 (step 6): rank 1 has all_reduce sum of 64 x f32 (256B), rank 0 has all_reduce sum of 4096 x f32 (16KiB) at m.rs:88; neither side is a majority
   histories are equal up to record 8, all_gather of 64 x f32 (256B) by host/one_shot at logits
   policy, backends and version agree
-> compare what the engine's step gave the call at m.rs:88 on ranks 0 and 1: batch, sequence lengths, padding

group `tp` (7), 3 ranks
  rank  process   state            records  done  step  last
  0     host:100  running, failed  9        8     6     all_reduce sum of 4096 x f32 (16KiB) by host/one_shot at m.rs:88
  1     host:101  running, open    9        8     6     all_reduce sum of 64 x f32 (256B) by host/one_shot at m.rs:88
  2     host:102  not seen         -        -     -     -
  rank 0 ended with: sizes differ [2J second line

note: rank 2 of `tp` (host:102 on node node-a) was not seen: no copy of its ring is here that can be read
";
    assert_eq!(report, expected);
}

#[test]
fn healthy_is_said_in_words() {
    let mut group = Group::new("tp", 7, 2);
    group.steps(0..1);
    assert!(text(&group.diagnosis()).contains("nothing wrong was found"));
}

#[test]
fn names_in_json_stay() {
    let mut group = Group::new("tp", 7, 3);
    group.steps(0..1).part(1, &call(64, "a"), &call(32, "b"));
    let json = serde_json::to_value(group.diagnosis()).expect("all of it is plain data");
    let verdict = &json["verdicts"][0];
    let keys: Vec<&String> = verdict.as_object().expect("a verdict is an object").keys().collect();
    let mut known = [
        "class", "branch", "fields", "tag", "group", "number", "seq", "step", "ranks", "site",
        "expected", "found", "sentence", "evidence", "advice", "age_ms", "effect",
    ];
    known.sort_unstable();
    let mut keys: Vec<&str> = keys.into_iter().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, known);
    assert_eq!(verdict["ranks"], serde_json::json!([1]));
    let rank = &json["groups"][0]["ranks"][1];
    assert_eq!((&rank["life"], &rank["phase"]), (&"running".into(), &"open".into()));
}
