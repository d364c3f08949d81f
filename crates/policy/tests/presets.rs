//! Presets are bound late: the strongest layer's counts everywhere.

mod support;

use crossover_policy::Effective;
use support::isolated;

const BASE: &str = "schema = 1
[preset.fast]
chain = [{ use = 'ipc/one_shot_push', bytes = '..=64KiB' }, { use = 'ipc/two_shot_pull' }]
[preset.unused]
chain = [{ use = 'host' }]
[rule.reduce]
match = { op = 'all_reduce' }
chain = [{ use = 'host/two_shot', bytes = '..=1KiB' }, { preset = 'fast' }, { use = 'host' }]
[rule.twice]
chain = [{ preset = 'fast' }, { preset = 'fast' }]";

fn chain(effective: &Effective, rule: &str) -> String {
    let rule = effective.policy.rules().iter().find(|r| r.id == rule).expect("the rule");
    rule.chain.iter().map(|c| c.target()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_preset_stands_for_its_chain() {
    let effective = isolated(&[BASE]).unwrap();
    assert_eq!(
        chain(&effective, "reduce"),
        "host/two_shot ipc/one_shot_push ipc/two_shot_pull host"
    );
    let twice = "ipc/one_shot_push ipc/two_shot_pull ipc/one_shot_push ipc/two_shot_pull";
    assert_eq!(chain(&effective, "twice"), twice);
}

#[test]
fn the_strongest_definition_counts_in_lower_files_too() {
    let above = "schema = 1\n[preset.fast]\nchain = [{ use = 'nvls' }]";
    let effective = isolated(&[BASE, above]).unwrap();
    assert_eq!(chain(&effective, "reduce"), "host/two_shot nvls host");
    let preset = &effective.presets()[0];
    assert_eq!((preset.id.as_str(), preset.origin.line), ("fast", 2));
    assert!(preset.origin.file.ends_with("1.toml"));
    let rule = effective.policy.rules().iter().find(|rule| rule.id == "reduce").unwrap();
    assert!(rule.origin.file.ends_with("0.toml"), "the rule stays where it was stated");
    assert_eq!(effective.presets()[1].id, "unused");
}

#[test]
fn a_rule_may_name_a_preset_of_another_file() {
    let below = "schema = 1\n[rule.early]\nchain = [{ preset = 'late' }]";
    let above = "schema = 1\n[preset.late]\nchain = [{ use = 'host' }]";
    assert_eq!(chain(&isolated(&[below, above]).unwrap(), "early"), "host");
    // A chain that is replaced asks for no preset.
    let replaced = "schema = 1\n[rule.early]\nchain = [{ use = 'ipc' }]";
    assert_eq!(chain(&isolated(&[below, replaced]).unwrap(), "early"), "ipc");
    assert!(isolated(&[below]).unwrap_err().contains("no file has a preset `late`"));
}
