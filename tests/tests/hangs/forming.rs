//! A group that does not come about: each rank says why and ends in time, and there is nothing to dump.

use super::ended::Ended;
use super::job::{engines, together, wired};

/// All ranks but `except` end with this code and say this; there is no dump.
#[track_caller]
fn refused(ended: &Ended, code: i32, words: &[&str], except: &[u32]) {
    ended.codes(code, except).say(words, except).no_dump();
}

#[test]
fn a_rank_never_comes() {
    together(&[0, 1], |&rank| {
        let plan = engines(3, &format!("rank={rank},at=form,kill"));
        let ended = plan.set("form_timeout", "3s").run();
        // Not before the time is over.
        refused(&ended, 4, &[&format!("still waiting for rank {rank}"), "after 3."], &[rank]);
    });
}

#[test]
fn a_rank_comes_late() {
    let plan = engines(3, "rank=1,at=form,delay=1000 rank=0,at=form,stop=500");
    plan.run().well();
}

#[test]
fn a_rank_is_stopped_before_it_comes() {
    let plan = engines(3, "rank=2,at=form,stop=4500").set("form_timeout", "3s");
    let ended = plan.run();
    refused(&ended, 4, &["still waiting for rank 2"], &[2]);
    assert_eq!(ended.ends[2].code, Some(4), "{ended:#?}");
}

#[test]
fn killed_in_a_vote() {
    let ended = wired(3, "rank=2,at=vote,kill").run();
    refused(&ended, 4, &["rank 2 was lost at step `raise the wire`"], &[2]);
}

#[test]
fn a_vote_that_fails() {
    let ended = wired(3, "rank=0,at=vote,fail").run();
    refused(&ended, 3, &["rank 0 could not raise the wire: the wire is cut"], &[]);
}

#[test]
fn late_in_a_vote() {
    wired(8, "rank=5,at=vote,delay=700").run().well();
}

#[test]
fn stopped_in_a_vote() {
    let plan = wired(3, "rank=1,at=vote,stop=4500");
    let ended = plan.set("form_timeout", "3s").run();
    refused(&ended, 4, &["step `raise the wire`: still waiting for rank 1"], &[]);
}

#[test]
fn another_policy_file() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = "schema = 1\n[rule.mine]\nmatch = { op = \"all_reduce\" }\n\
                chain = [ { use = \"host/two_shot\" } ]\n";
    std::fs::write(file.path(), text).expect("written");
    let ended = engines(3, "").set_on(2, "policy", file.path().display()).run();
    let place = format!("{}:2", file.path().display());
    refused(&ended, 2, &["ranks disagree on the policy", "rank 2 has rule `mine`", &place], &[]);
}

#[test]
fn another_environment() {
    let ended = engines(3, "").set_on(1, "use", "host/two_shot").run();
    refused(&ended, 2, &["ranks disagree on the policy", "CROSSOVER_USE", "rank 1"], &[]);
    let ended = engines(3, "").set_on(1, "determinism", "size_invariant").run();
    refused(&ended, 2, &["the engine's contract", "rank 1 has size_invariant"], &[]);
}

#[test]
fn another_version_of_a_backend() {
    let ended = wired(3, "").with_on(2, "--wire 2").run();
    refused(&ended, 2, &["`wire`", "rank 2", "version 2"], &[]);
}
