//! A rank is killed, stopped, late, frozen, leaves, or has a link that is dead: in an open group, in a
//! call, in the goodbye. The others end in time, and name it.

use super::ended::Ended;
use super::job::{Plan, engines, on_host, together, wired};

/// What is awaited is a hang after 2 s, and told after half a second.
fn short(plan: Plan) -> Plan {
    plan.set("hang_warning", "500ms").set("hang_timeout", "2s")
}

/// `ranks` are killed; all others say that one is lost, and the dump names them.
#[track_caller]
fn killed(world: u32, faults: &str, ranks: &[u32]) -> Ended {
    let ended = engines(world, faults).run();
    ended.codes(4, ranks).verdict("crashed_rank", ranks);
    for rank in ranks {
        assert_eq!(ended.ends[*rank as usize].code, None, "it was killed: {ended:#?}");
    }
    ended
}

#[test]
fn killed_between_calls() {
    killed(3, "rank=0,step=5,at=state,kill", &[0]).say(&["rank 0"], &[0]);
    killed(2, "rank=1,step=5,at=attn,kill", &[1]).say(&["rank 1"], &[1]);
}

#[test]
fn killed_in_a_call() {
    let faults = "rank=2,step=5,at=attn,delay=1500 rank=1,step=5,at=attn,kill,after=300";
    let ended = killed(3, faults, &[1]);
    ended.say(&["rank 1"], &[1]);
    let (_, dump) = &ended.dumps[0];
    assert_eq!(dump["verdicts"][0]["seq"], 13, "{dump:#}");
}

#[test]
fn two_of_eight_killed() {
    let faults = "rank=3,step=5,at=state,kill rank=7,step=5,at=state,kill";
    let ended = engines(8, faults).run();
    ended.codes(4, &[3, 7]);
    let (_, dump) = &ended.dumps[0];
    let verdict = &dump["verdicts"][0];
    assert_eq!(verdict["class"], "crashed_rank", "{ended:#?}");
    // Whoever sees the first of them gone may look before the second is.
    let ranks: Vec<u64> = serde_json::from_value(verdict["ranks"].clone()).expect("ranks");
    assert!(!ranks.is_empty() && ranks.iter().all(|rank| [3, 7].contains(rank)), "{ended:#?}");
}

#[test]
fn killed_instead_of_a_goodbye() {
    killed(3, "rank=1,at=close,kill", &[1]).say(&["rank 1"], &[1]);
}

#[test]
fn stopped_for_longer_than_it_may() {
    together(&["step=5,at=logits", "at=close"], |point| {
        let ended = short(engines(3, &format!("rank=1,{point},stop=4000"))).run();
        ended.codes(4, &[]).verdict("stopped_rank", &[1]);
        ended.say(&["is stopped, by a signal or a debugger"], &[]).name_a_call_once(&[]);
    });
}

#[test]
fn stopped_in_a_call() {
    let faults = "rank=0,step=5,at=attn,delay=700 rank=2,step=5,at=attn,stop=4000,after=300";
    let ended = short(engines(3, faults)).run();
    ended.codes(4, &[]).verdict("stopped_rank", &[2]);
}

#[test]
fn stopped_and_continued_in_time() {
    let stops =
        ["step=5,at=logits,stop=800", "step=5,at=attn,stop=800,after=100", "at=close,stop=800"];
    together(&stops, |stop| {
        let faults = format!("rank=1,{stop} rank=0,step=5,at=attn,delay=300");
        let ended = engines(3, &faults).run();
        assert_eq!(ended.well().warnings(), 0, "{ended:#?}");
    });
}

#[test]
fn later_than_it_may() {
    let cases = [(3, 2, "step=5,at=logits"), (8, 0, "step=5,at=attn"), (3, 1, "at=close")];
    together(&cases, |&(world, rank, point)| {
        let ended = short(engines(world, &format!("rank={rank},{point},delay=4000"))).run();
        ended.codes(4, &[]).verdict("not_arrived", &[rank]);
        ended.say(&[&format!("rank {rank} has not arrived at")], &[]).name_a_call_once(&[]);
    });
}

#[test]
fn a_second_late_is_told_and_ends_nothing() {
    let plan = engines(3, "rank=1,step=5,at=attn,delay=1800").set("hang_warning", "300ms");
    let ended = plan.run();
    ended.well();
    let told = |rank: usize| ended.ends[rank].stderr.contains("rank 1 has not arrived at call 13");
    assert!(told(0) && told(2), "{ended:#?}");
}

#[test]
fn a_hang_is_only_told_where_it_is_to_be_logged() {
    let plan = short(engines(3, "rank=2,step=5,at=logits,delay=4000")).set("on_hang", "log");
    let ended = plan.run();
    ended.codes(0, &[]).verdict("not_arrived", &[2]);
    let told =
        |rank: usize| ended.ends[rank].stderr.contains("ERROR crossover::watch: the watchdog:");
    assert!(told(0) && told(1), "{ended:#?}");
}

#[test]
fn a_call_has_its_deadline_whatever_is_done_where_it_hangs() {
    together(&["log", "error", "abort"], |on_hang| {
        let plan = on_host(3, "rank=2,step=5,at=logits,delay=4000").set("on_hang", on_hang);
        let ended = plan.set("call_timeout", "2s").run();
        ended.codes(4, &[]).say(&["call 14: still waiting for rank 2 after 2."], &[]);
        ended.verdict("not_arrived", &[2]);
    });
}

#[test]
fn a_hang_ends_what_comes_after_it_where_it_is_to_be_an_error() {
    let plan = short(engines(3, "rank=2,step=5,at=logits,delay=4000")).set("on_hang", "error");
    let ended = plan.run();
    ended.codes(4, &[]).say(&["rank 2 has not arrived at call 14"], &[]);
    ended.verdict("not_arrived", &[2]);
}

#[test]
fn frozen_with_its_watchdog() {
    let plan = engines(3, "rank=1,step=5,at=attn,freeze=9000");
    let ended = plan.set("hang_warning", "500ms").set("hang_timeout", "7s").run();
    ended.codes(4, &[]).verdict("frozen", &[1]);
}

#[test]
fn a_rank_leaves() {
    // On a device peers learn of it before they have come to the goodbye; some then are between two calls.
    let cases: [(Plan, &[&str]); 2] = [
        (engines(3, "rank=1,step=5,at=state,leave"), &["all_reduce", "and it ended for "]),
        (on_host(3, "rank=1,at=close,leave"), &["a goodbye"]),
    ];
    together(&cases, |(plan, told)| {
        let ended = plan.run();
        let verdict = ended.codes(4, &[1]).verdict("left", &[1]);
        let sentence = verdict["sentence"].as_str().unwrap_or_default();
        assert!(told.iter().any(|told| sentence.contains(told)), "{verdict:#}");
        assert_eq!(ended.ends[1].code, Some(0), "{ended:#?}");
    });
}

#[test]
fn a_link_is_dead() {
    // Every rank makes the call, and one's backend neither sends nor says so.
    let ended = short(wired(3, "rank=2,step=5,at=wire,hang")).run();
    ended.codes(4, &[]).verdict("stuck_transport", &[0, 1, 2]);
    // That of the dead link learns it from the others' rings.
    ended.say(&["all ranks are in call 5"], &[]).name_a_call_once(&[]);
}
