use serde_json::Value;

use super::timeline::{diagnosis, verdict};
use super::*;
use crate::export::chrome_trace;

fn events(images: &[Image], verdicts: Vec<crate::Verdict>) -> Vec<Value> {
    let text = chrome_trace(images, &diagnosis(verdicts));
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    trace["traceEvents"].as_array().expect("a list").clone()
}

fn of(events: &[Value], rank: u64, phase: &str) -> Vec<Value> {
    let wanted = |event: &&Value| event["pid"] == rank && event["ph"] == phase;
    events.iter().filter(wanted).cloned().collect()
}

#[test]
fn a_record_lasts_until_the_next_and_an_unfinished_one_until_the_look() {
    let mut images = group("tp", 7, 2);
    calls(&mut images, 2);
    record(&mut images[1], What::State, 5, "");
    record(&mut images[1], What::Call(Op::AllToAll), 8, "x\"y");
    hangs(&mut images[1]);
    let events = events(&images, vec![verdict(7, 2, &[1], "odd")]);
    let spans = of(&events, 1, "X");
    assert_eq!(spans.len(), 3);
    // Microseconds since rank 0's first record, which was one before this rank's.
    assert_eq!((&spans[0]["ts"], &spans[0]["dur"]), (&1.0.into(), &1000.0.into()));
    assert_eq!(spans[0]["args"]["came back"], true);
    let last = &spans[2];
    assert_eq!((&last["name"], &last["cname"]), (&"all_to_all".into(), &"terrible".into()));
    assert_eq!((&last["ts"], &last["dur"]), (&3001.0.into(), &59_995_999.0.into()));
    assert_eq!(last["args"]["site"], "x\"y");
    assert_eq!(last["args"]["bytes"], 32);
    assert_eq!(last["args"]["came back"], false);
    let marks = of(&events, 1, "i");
    assert_eq!((&marks[0]["name"], &marks[0]["s"]), (&"state".into(), &"t".into()));
    // The verdict is where its record is.
    assert_eq!((&marks[1]["name"], &marks[1]["s"]), (&"odd".into(), &"p".into()));
    assert_eq!(marks[1]["ts"], spans[1]["ts"]);
    assert_eq!(of(&events, 0, "i").len(), 0);
}

#[test]
fn groups_are_tracks_of_their_processes() {
    let mut world = group("world", 9, 2);
    let mut pair = group("pair", 3, 2);
    calls(&mut world, 1);
    calls(&mut pair, 1);
    let images: Vec<Image> = world.into_iter().chain(pair).collect();
    let events = events(&images, vec![]);
    let names: Vec<String> = of(&events, 1, "M")
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| format!("{} {}", event["tid"], event["args"]["name"]))
        .collect();
    assert_eq!(names, ["0 \"pair rank 1\"", "1 \"world rank 1\""]);
}

#[test]
fn of_nothing_there_are_no_events() {
    assert_eq!(events(&[], vec![]), Vec::<Value>::new());
}
