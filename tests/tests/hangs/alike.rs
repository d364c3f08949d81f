//! One event is one error on every rank, whoever found it: the same kind, in the same words, and the same
//! exit code.

use super::ended::Ended;
use super::job::{Plan, on_host, together};

/// Of all ranks rank 0 alone ends the group where its watchdog finds something.
fn one_watchdog(plan: Plan) -> Plan {
    let plan = plan.set("hang_warning", "500ms").set("hang_timeout", "2s").set("on_hang", "log");
    plan.set_on(0, "on_hang", "abort")
}

/// All ranks but those that were killed end with this code, and the very same line.
#[track_caller]
fn alike(ended: &Ended, code: i32, words: &str, except: &[u32]) {
    ended.codes(code, except).say(&[words], except);
    let is_left = |rank: &usize| !except.contains(&(*rank as u32));
    let ends = ended.ends.iter().enumerate().filter(|(rank, _)| is_left(rank));
    let mut lines: Vec<&str> = ends.map(|(_, end)| end.last()).collect();
    lines.dedup();
    assert_eq!(lines.len(), 1, "{ended:#?}");
}

#[test]
fn calls_that_differ() {
    let ended = on_host(3, "rank=1,step=6,at=logits,size").run();
    alike(&ended, 1, "ranks made different calls", &[]);
}

#[test]
fn a_rank_that_is_gone() {
    let faults = "rank=2,step=5,at=attn,delay=700 rank=1,step=5,at=attn,kill";
    alike(&on_host(3, faults).run(), 4, "rank 1 was lost: ", &[1]);
}

#[test]
fn a_rank_that_is_late_for_one_watchdog() {
    let ended = one_watchdog(on_host(3, "rank=1,step=5,at=logits,delay=4000")).run();
    alike(&ended, 4, "the watchdog: in group `tp` rank 1 has not arrived at call 14 (", &[]);
}

#[test]
fn ranks_that_compare_their_calls_first() {
    // The late one does not come to the comparison any more: its peers say why, and not that it is gone.
    let late = || on_host(3, "rank=1,step=5,at=logits,delay=4000");
    let all = late().set("hang_warning", "500ms").set("hang_timeout", "2s");
    together(&[one_watchdog(late()), all], |plan| {
        let ended = plan.clone().set("check", "args").run();
        alike(&ended, 4, "the watchdog: in group `tp` rank 1 has not arrived at call 14 (", &[]);
    });
}
