//! Graphs on a device: a rank captures other calls, replays another graph or none, or is killed, stopped
//! or late in a capture, at its end or before a replay.

use serde_json::Value;

use super::ended::Ended;
use crossover_tests::device::Stand;

use super::job::{Plan, on_device, skip};

/// Three engines that replay graphs.
fn graphs(fault: &str) -> Option<Plan> {
    let plan = on_device(3, fault)?.with("--graphs --steps 6");
    Some(plan.set("hang_warning", "500ms").set("hang_timeout", "3s"))
}

/// What comes of `fault` on rank 1: this code on all others, and a dump about it of this class.
#[track_caller]
fn ends(fault: &str, code: i32, class: &str) -> Option<(Ended, Value)> {
    let ended = graphs(&format!("rank=1,{fault}"))?.run();
    let except: &[u32] = if fault.ends_with("kill") { &[1] } else { &[] };
    ended.codes(code, except);
    let verdict = if code == 1 { ended.odd(class, 1) } else { ended.verdict(class, &[1]) };
    let verdict = verdict.clone();
    Some((ended, verdict))
}

#[test]
fn graphs_that_are_well() {
    for fault in ["rank=1,step=2,at=capture,delay=400", "rank=1,step=5,at=replay,delay=400"] {
        let Some(plan) = graphs(fault) else { return };
        plan.set("hang_warning", "10s").run().well();
    }
}

#[test]
fn graphs_of_two_groups() {
    let Some(plan) = graphs("") else { return };
    plan.with("--double").set("hang_warning", "10s").run().well();
}

#[test]
fn a_call_is_left_out_of_a_capture() {
    let Some((ended, verdict)) = ends("step=1,at=capture,skip", 1, "branch_divergence") else {
        return;
    };
    ended.say(&["ranks captured different calls: rank 0 captured 2, rank 1 captured 1"], &[]);
    assert_eq!(verdict["branch"], "skipped", "{verdict:#}");
}

#[test]
fn another_size_is_captured() {
    // Ranks that compare in the capture itself end before others come to its end: those learn why.
    let Some((ended, verdict)) = ends("step=2,at=capture,size", 1, "size_mismatch") else { return };
    ended.say(&["ranks made different calls"], &[]);
    assert!(verdict["sentence"].as_str().is_some_and(|s| s.contains("2051")), "{verdict:#}");
}

#[test]
fn killed_in_a_capture_and_at_its_end() {
    for fault in ["step=2,at=capture,kill", "step=2,at=commit,kill"] {
        let Some((ended, _)) = ends(fault, 4, "crashed_rank") else { return };
        ended.say(&["rank 1"], &[1]);
    }
}

#[test]
fn stopped_at_the_end_of_a_capture() {
    let Some((ended, _)) = ends("step=2,at=commit,stop=5000", 4, "stopped_rank") else { return };
    ended.say(&["rank 1"], &[]);
}

#[test]
fn killed_before_a_replay() {
    let Some((ended, _)) = ends("step=5,at=replay,kill", 4, "crashed_rank") else { return };
    ended.say(&["rank 1"], &[1]);
}

#[test]
fn late_for_a_replay() {
    let Some((_, verdict)) = ends("step=5,at=replay,delay=5000", 4, "not_arrived") else { return };
    assert!(verdict["sentence"].as_str().is_some_and(|s| s.contains("the replay of graph 2")));
}

#[test]
fn a_device_that_does_something_else_is_behind() {
    // Every host has enqueued the replay: what tells is what the others' kernels wait for.
    let is_library = std::env::var("CROSSOVER_TEST_USE").is_ok_and(|used| used != "ipc");
    let can_sleep = |stand: &Stand| stand.is_emulated() || stand.name.starts_with("cuda:");
    if is_library || !Stand::find().as_ref().is_ok_and(can_sleep) {
        return skip("kernels that say for whom they wait, on a device that can be kept busy");
    }
    // Emulated kernels say seldom that they wait, the more seldom the more else the machine does.
    let Some(plan) = graphs("rank=1,step=5,at=replay,busy") else { return };
    let ended = plan.set("hang_timeout", "2s").run();
    ended.codes(4, &[]);
    let verdict = ended.verdict("device_behind", &[1]);
    assert!(verdict["sentence"].as_str().is_some_and(|s| s.contains("rank 1")), "{verdict:#}");
    let (_, dump) = &ended.dumps[0];
    let waits = dump["groups"][0]["ranks"][0]["device"]["awaited"].as_array();
    assert!(waits.is_some_and(|ranks| ranks.contains(&1.into())), "{dump:#}");
}

#[test]
fn another_graph_is_replayed() {
    let fault = "step=5,at=replay,other";
    let Some((ended, verdict)) = ends(fault, 1, "branch_divergence") else { return };
    ended.say(&["the replay of graph 1", "the replay of graph 2"], &[]);
    assert_eq!(verdict["branch"], "other_graph", "{verdict:#}");
}

#[test]
fn calls_are_made_instead_of_a_replay() {
    for change in ["eager", "skip"] {
        let fault = format!("step=5,at=replay,{change}");
        let Some((ended, verdict)) = ends(&fault, 1, "branch_divergence") else { return };
        ended.say(&["ranks made different calls", "the replay of graph 2"], &[]);
        let branches = ["eager_vs_graph", "skipped"];
        assert!(branches.iter().any(|branch| verdict["branch"] == *branch), "{verdict:#}");
    }
}
