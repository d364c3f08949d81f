//! A rank does something else than its peers. The backend sees it in the call itself; the dump says who is
//! odd, and how.

use serde_json::Value;

use super::job::{engines, on_host, together, wired};

/// One rank does something else; all end with a mismatch, and the dump is about `ranks`.
#[track_caller]
fn differs(world: u32, faults: &str, class: &str, ranks: &[u32]) -> Value {
    let ended = engines(world, faults).run();
    ended.codes(1, &[]).say(&["ranks made different calls"], &[]);
    match ranks {
        [rank] => ended.odd(class, *rank).clone(),
        both => ended.verdict(class, both).clone(),
    }
}

#[test]
fn a_skipped_call() {
    let verdict = differs(3, "rank=1,step=6,at=logits,skip", "branch_divergence", &[1]);
    assert_eq!(verdict["branch"], "skipped", "{verdict:#}");
    assert_eq!(verdict["site"], "logits", "{verdict:#}");
    assert_eq!(verdict["step"], 6, "{verdict:#}");
}

#[test]
fn a_call_too_many() {
    let verdict = differs(3, "rank=2,step=6,at=attn,extra", "branch_divergence", &[2]);
    let sentence = verdict["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains("all_reduce sum of 1024 x f32 (4KiB)"), "{verdict:#}");
}

#[test]
fn another_way_through_the_program() {
    let verdict = differs(8, "rank=4,step=6,at=logits,path", "branch_divergence", &[4]);
    let sentence = verdict["sentence"].as_str().unwrap_or_default();
    let odd = "rank 4 has broadcast from rank 0 of 8 x f32 (32B) at dense";
    assert!(sentence.contains(odd), "{verdict:#}");
}

#[test]
fn another_size() {
    let verdict = differs(3, "rank=0,step=6,at=attn,size", "size_mismatch", &[0]);
    assert_eq!(verdict["fields"], serde_json::json!(["count"]), "{verdict:#}");
}

#[test]
fn another_element_type() {
    let verdict = differs(3, "rank=2,step=6,at=attn,dtype", "argument_mismatch", &[2]);
    assert_eq!(verdict["fields"], serde_json::json!(["dtype"]), "{verdict:#}");
}

#[test]
fn another_reduction() {
    let verdict = differs(8, "rank=7,step=6,at=attn,reduce", "argument_mismatch", &[7]);
    assert_eq!(verdict["fields"], serde_json::json!(["reduce_op"]), "{verdict:#}");
}

#[test]
fn another_root() {
    let verdict = differs(3, "rank=1,step=6,at=sampled,root", "argument_mismatch", &[1]);
    assert_eq!(verdict["fields"], serde_json::json!(["root"]), "{verdict:#}");
}

#[test]
fn calls_that_are_compared_before_they_start() {
    let ended = engines(3, "rank=0,step=6,at=logits,size").set("check", "args").run();
    ended.codes(1, &[]).say(&["call 17: ranks made different calls: rank 0 has count 67"], &[]);
    ended.odd("size_mismatch", 0);
}

#[test]
fn a_comparison_that_waits_in_vain_names_its_call_once() {
    let plan = on_host(3, "rank=2,step=5,at=logits,delay=5000").set("check", "args");
    let ended = plan.set("form_timeout", "3s").run();
    let said = "engine: compare arguments, call 14: still waiting for rank 2 after 3.";
    ended.codes(4, &[]).say(&[said], &[]);
}

#[test]
fn of_two_ranks_both_are_named() {
    let verdict = differs(2, "rank=1,step=6,at=attn,size", "size_mismatch", &[0, 1]);
    let sentence = verdict["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains("neither side is a majority"), "{verdict:#}");
}

#[test]
fn what_the_watchdog_finds_first_is_no_other_end_than_what_a_call_finds() {
    // Two ranks wait inside their backend before it has told anybody anything, the third for them: what
    // differs is seen in rings alone, by whichever watchdog looks first.
    let faults =
        "rank=0,step=5,at=wire,hang rank=1,step=5,at=wire,hang rank=1,step=2,at=logits,size";
    let ended = wired(3, faults).run();
    ended
        .codes(1, &[])
        .say(&["ranks made different calls: size mismatch in group `tp`, call 5 ("], &[]);
    ended.odd("size_mismatch", 1);
}

#[test]
fn two_that_differ_need_no_third_to_prove_it() {
    // The third comes long after they have been told.
    let faults = "rank=1,step=6,at=attn,size rank=2,step=6,at=attn,stop=6000";
    let ended = on_host(3, faults).run();
    ended.codes(1, &[]).say(&["ranks made different calls", "size mismatch"], &[]);
    ended.verdict("size_mismatch", &[0, 1]);
    for end in &ended.ends[..2] {
        assert!(!end.stderr.contains(" WARN crossover::watch"), "{ended:#?}");
    }
}

#[test]
fn a_drift_of_state_and_what_it_leads_to() {
    let faults = "rank=1,step=4,at=state,drift rank=1,step=6,at=logits,size";
    let verdict = differs(3, faults, "state_drift", &[1]);
    assert_eq!(verdict["step"], 4, "{verdict:#}");
    let effect = &verdict["effect"];
    assert_eq!((&effect["class"], &effect["step"]), (&"size_mismatch".into(), &6.into()));
}

#[test]
fn a_drift_of_state_that_leads_to_nothing_is_told_and_ends_nothing() {
    // A rank is a second late, so that watchdogs have time to look.
    let faults = "rank=1,step=4,at=state,drift rank=0,step=8,at=attn,delay=1500";
    let ended = engines(3, faults).run();
    for end in &ended.well().ends {
        assert!(end.stderr.contains("WARN crossover::watch: state drift"), "{ended:#?}");
        assert!(end.stderr.contains("rank 1 has a note of state"), "{ended:#?}");
    }
}

#[test]
fn a_note_that_one_rank_leaves_out_is_told_and_ends_nothing() {
    let faults = "rank=1,step=4,at=state,skip rank=0,step=8,at=attn,delay=1500";
    let ended = engines(3, faults).run();
    for end in &ended.well().ends {
        let warning = end.stderr.lines().find(|line| line.contains("WARN crossover::watch"));
        let names = |line: &str| line.contains("rank 1") && line.contains("a note of state");
        assert!(warning.is_some_and(names), "{ended:#?}");
    }
}

#[test]
fn a_drift_that_rings_have_forgotten_before_a_second_look_ends_nothing() {
    // Steps are so fast that what is kept is overwritten between two looks, and so many that a third comes.
    together(&[("drift", 1), ("skip", 2), ("drift", 0)], |&(what, rank)| {
        let fault = format!("rank={rank},step=6,at=state,{what}");
        let ended = on_host(3, &fault).with("--steps 6000 --jitter 2").run();
        for end in &ended.well().ends {
            let of_watch = end.stderr.lines().filter(|line| line.contains("crossover::watch"));
            let lines: Vec<&str> = of_watch.collect();
            assert!(lines.iter().all(|line| line.contains(" WARN ")), "{ended:#?}");
            let names = |line: &&&str| line.contains(&format!("rank {rank} "));
            assert_eq!(lines.iter().filter(names).count(), 1, "{ended:#?}");
        }
    });
}

#[test]
fn ranks_that_wait_for_one_another_in_two_groups() {
    let cases = [(2, "rank=0,step=5,at=attn,swap"), (3, "rank=2,step=5,at=attn,swap")];
    together(&cases, |&(world, fault)| {
        let plan = engines(world, fault).with("--double");
        let plan = plan.set("hang_warning", "500ms").set("hang_timeout", "2s");
        let ended = plan.run();
        ended.codes(4, &[]).say(&["deadlock over groups", "`tp`", "`ep`"], &[]);
        for (tag, dump) in &ended.dumps {
            assert_eq!(dump["verdicts"][0]["class"], "cross_group_deadlock", "{tag}: {ended:#?}");
        }
        assert!(!ended.dumps.is_empty(), "{ended:#?}");
    });
}

#[test]
fn a_call_that_gives_up_in_such_a_circle_tells_of_it() {
    // Which rank waits longest is the first to give up; the others come to it in their own time.
    let cases = ["", "rank=0,step=6,at=attn,delay=700"];
    together(&cases, |late| {
        let plan = on_host(3, &format!("rank=1,step=6,at=attn,swap {late}")).with("--double");
        let ended = plan.set("call_timeout", "2s").run();
        ended.codes(4, &[]);
        for end in &ended.ends {
            let error = end.stderr.lines().find(|l| l.contains("ERROR crossover::watch"));
            let tells = error.is_some_and(|line| line.contains("deadlock over groups"));
            assert!(tells, "{ended:#?}");
        }
        for (tag, dump) in &ended.dumps {
            assert_eq!(dump["verdicts"][0]["class"], "cross_group_deadlock", "{tag}: {ended:#?}");
        }
        assert!(!ended.dumps.is_empty(), "{ended:#?}");
    });
}
