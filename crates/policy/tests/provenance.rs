//! Of everything in force, who stated it.

mod support;

use crossover_policy::{Effective, Statement};
use support::isolated;

/// `field layer file:line`.
fn told(statements: &[Statement]) -> Vec<String> {
    let file = |s: &Statement| s.origin.file.rsplit('/').next().unwrap_or_default().to_owned();
    statements
        .iter()
        .map(|s| format!("{} {} {}:{}", s.field, s.layer, file(s), s.origin.line))
        .collect()
}

fn of(effective: &Effective, rule: &str) -> Vec<String> {
    told(effective.statements(rule))
}

const BELOW: &str = "schema = 1
[contract]
determinism = 'run_to_run'
accept = ['signed_zero_flush']
[rule.small]
match = { op = 'all_gather' }
chain = [
  { use = 'host' },
]
evidence = { kind = 'default' }
priority = 1
[table.steps]
match = { op = 'all_reduce' }
last = true
key = ['world']
columns = ['host/one_shot', 'host/two_shot']
rows.2 = ['..=1KiB', 'any']
rows.8 = ['..=4KiB', 'any']";

const ABOVE: &str = "schema = 1
[rule.small]
priority = 2
[rule.'steps@8']
chain = [{ use = 'host' }]
[contract]
accept = []";

#[test]
fn every_field_knows_who_stated_it() {
    let one = isolated(&[BELOW]).unwrap();
    assert_eq!(
        of(&one, "small"),
        [
            "match user 0.toml:6",
            "chain user 0.toml:7",
            "priority user 0.toml:11",
            "evidence user 0.toml:10",
        ]
    );
    assert_eq!(
        of(&one, "steps@8"),
        ["match user 0.toml:13", "chain user 0.toml:18", "last user 0.toml:14"]
    );
    let both = isolated(&[BELOW, ABOVE]).unwrap();
    assert_eq!(
        of(&both, "small"),
        [
            "match user 0.toml:6",
            "chain user 0.toml:7",
            "evidence user 0.toml:10",
            "priority user 1.toml:3",
        ]
    );
    assert_eq!(
        of(&both, "steps@8"),
        ["match user 0.toml:13", "last user 0.toml:14", "chain user 1.toml:5"]
    );
    assert_eq!(
        told(both.contract_statements()),
        ["determinism user 0.toml:3", "accept user 1.toml:7"]
    );
    assert_eq!(of(&both, "floor")[0], "chain builtin default.toml:6");
    assert_eq!(of(&both, "absent"), [""; 0]);
    assert_eq!(told(isolated(&[]).unwrap().contract_statements()), [""; 0]);
}

#[test]
fn what_is_switched_off_is_remembered() {
    let off = "schema = 1\n[rule.small]\nenabled = false\n[table.steps]\nenabled = false";
    let effective = isolated(&[BELOW, off]).unwrap();
    let ids: Vec<&str> = effective.disabled_rules().iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids, ["small", "steps@2", "steps@8"]);
    assert_eq!(effective.disabled_rules()[0].chain[0].target(), "host");
    assert_eq!(of(&effective, "small").last().unwrap(), "enabled user 1.toml:3");
    assert_eq!(of(&effective, "steps@2").last().unwrap(), "enabled user 1.toml:5");
}

#[test]
fn evidence_goes_with_the_numbers_it_is_about() {
    let chain = "schema = 1\n[rule.small]\nchain = [{ use = 'ipc' }]";
    let effective = isolated(&[BELOW, chain]).unwrap();
    assert_eq!(
        of(&effective, "small"),
        ["match user 0.toml:6", "priority user 0.toml:11", "chain user 1.toml:3"]
    );
}
