//! A lint of many rules takes time as they are many, and not as their pairs are: `strict` runs it
//! while peers wait.
#![allow(clippy::print_stdout, reason = "how long it takes is worth seeing")]

mod support;

use std::time::{Duration, Instant};

use crossover_policy::Sources;
use crossover_policy::lint::{Options, lint};
use support::Files;

/// Rules without priorities, each with one candidate.
fn rules(count: u64, key: impl Fn(u64) -> String, range: impl Fn(u64) -> String) -> String {
    let names = ["ipc/one_shot_push", "ipc/two_shot_push"];
    let rule = |at: u64| {
        format!(
            "[rule.r{at}]\nmatch = {{ op = 'all_reduce', {} }}\n\
             chain = [{{ use = '{}', bytes = '{}' }}]\n",
            key(at),
            names[at as usize % 2],
            range(at)
        )
    };
    format!("schema = 1\n{}", (0..count).map(rule).collect::<String>())
}

#[track_caller]
fn took(name: &str, text: &str, limit: Duration) {
    let registry = crossover_backends::registry().unwrap();
    let files = Files::of(&[text]);
    let start = Instant::now();
    let report = lint(&Sources::isolated(files.paths()), &registry, &Options::default()).unwrap();
    let took = start.elapsed();
    println!(
        "{name}: {} findings, {} decisions, {took:.1?}",
        report.findings.len(),
        report.decisions
    );
    assert!(took < limit, "{name}: {took:?}");
}

#[test]
fn many_rules_are_linted_while_somebody_waits() {
    let count = 1000;
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 2 });
    let sm90 = |_: u64| "arch = 'sm90'".to_owned();
    let world = |at: u64| format!("world = {}", 2 + at % 15);
    let next = |at: u64| format!("{}KiB..{}KiB", at, at + 1);
    let within = |at: u64| format!("..={}KiB", at + 1);
    let any = |_: u64| "any".to_owned();
    took("apart", &rules(count, sm90, next), limit);
    took("one within the next", &rules(count, sm90, within), limit);
    took("all alike", &rules(count, sm90, any), limit);
    took("by world", &rules(count, world, within), limit);
}
