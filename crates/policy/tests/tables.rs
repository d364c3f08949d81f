//! Tables: rows are rules, and a higher file changes a table as it changes a rule.

mod support;

use crossover_core::call::{Op, Ops};
use crossover_core::policy::{Basis, Match, ParamValue, Rule};
use crossover_policy::bytes::range_text;
use support::{Files, isolated};

const STEPS: &str = r#"schema = 1
[table.steps]
match = { op = "all_reduce" }
last = true
priority = 3
key = ["arch", "world"]
columns = ["ipc/one_shot_push", "ipc/two_shot_pull", "ipc/one_shot_push", "host"]
rows.sm90-2 = ["..=1MiB", "-", "8MiB..", "any"]
rows.sm10x-8 = ["..=128KiB", { bytes = "..=8MiB" }, "-", "-"]
rows."gfx942-4..=6" = [{ bytes = "..=64KiB", params = { blocks = 4 } }, "any", "-", "-"]
params."ipc/one_shot_push" = { blocks = "128/world" }
evidence = { kind = "ported", from = "an engine" }
"#;

/// The rules of these files but the floor's.
fn rules(texts: &[&str]) -> Vec<Rule> {
    let policy = isolated(texts).unwrap_or_else(|told| panic!("{told}")).policy;
    let above = policy.rules().iter().filter(|rule| rule.origin.file != "policies/default.toml");
    above.cloned().collect()
}

/// `id line: candidates`.
fn outline(texts: &[&str]) -> Vec<String> {
    rules(texts).iter().map(told).collect()
}

fn told(rule: &Rule) -> String {
    let chain: Vec<String> = rule
        .chain
        .iter()
        .map(|c| {
            let params: Vec<String> = c.params.iter().map(|(k, v)| format!(" {k}={v}")).collect();
            format!("{} {}{}", c.target(), range_text(c.bytes), params.join(""))
        })
        .collect();
    format!("{} {}: {}", rule.id, rule.origin.line, chain.join(", "))
}

#[test]
fn each_row_is_a_rule() {
    assert_eq!(
        outline(&[STEPS]),
        [
            "steps@sm90-2 8: ipc/one_shot_push ..=1MiB blocks=128/world, \
             ipc/one_shot_push 8MiB.. blocks=128/world, host any",
            "steps@sm10x-8 9: ipc/one_shot_push ..=128KiB blocks=128/world, \
             ipc/two_shot_pull ..=8MiB",
            "steps@gfx942-4..=6 10: ipc/one_shot_push ..=64KiB blocks=4, ipc/two_shot_pull any",
        ]
    );
    let rules = rules(&[STEPS]);
    let whens: Vec<&Match> = rules.iter().map(|rule| &rule.when).collect();
    let when = |arch: &str, world| Match {
        op: Some(Ops::of(&[Op::AllReduce])),
        arch: Some(vec![arch.to_owned()]),
        world: Some(vec![world]),
        ..Match::default()
    };
    assert_eq!(whens, [&when("sm90", (2, 2)), &when("sm10x", (8, 8)), &when("gfx942", (4, 6))]);
    for rule in &rules {
        assert_eq!((rule.last, rule.priority), (true, 3));
        assert_eq!(rule.evidence.as_ref().unwrap().to_string(), "ported: from an engine");
    }
    assert_eq!(rules[0].chain[0].params, [("blocks".to_owned(), ParamValue::PerWorld(128))]);
}

#[test]
fn a_column_may_be_optional_and_cells_may_count_output() {
    let text = r#"schema = 1
[table.t]
key = "world"
columns = ["host", { use = "absent/any", optional = true }]
rows.2 = ["..=1KiB", "any"]
bytes_of = "output""#;
    let rules = rules(&[text]);
    let chain = &rules[0].chain;
    assert_eq!((chain[0].optional, chain[1].optional), (false, true));
    assert_eq!((chain[0].basis, chain[1].basis), (Basis::Output, Basis::Output));
}

#[test]
fn a_higher_file_changes_all_rows_at_once() {
    let above = "schema = 1\n[table.steps]\nlast = false\npriority = 9\n";
    let changed = rules(&[STEPS, above]);
    let original = rules(&[STEPS]);
    assert_eq!(changed.len(), 3);
    for (new, old) in changed.iter().zip(&original) {
        assert_eq!((new.last, new.priority, new.origin.line), (false, 9, 2));
        assert_eq!((&new.chain, &new.when, &new.evidence), (&old.chain, &old.when, &old.evidence));
    }
    let off = "schema = 1\n[table.steps]\nenabled = false";
    assert_eq!(outline(&[STEPS, off]), [""; 0]);
    let on = "schema = 1\n[table.steps]\nenabled = true";
    assert_eq!(rules(&[STEPS, off, on]).len(), 3);

    let narrowed = "schema = 1\n[table.steps]\nmatch = { op = 'all_reduce', mode = 'graph' }";
    let rows = rules(&[STEPS, narrowed]);
    for (new, old) in rows.iter().zip(&original) {
        assert_eq!(new.when.mode.unwrap().to_string(), "graph");
        assert_eq!((&new.when.arch, &new.when.world), (&old.when.arch, &old.when.world));
    }
}

#[test]
fn a_higher_file_replaces_and_adds_rows() {
    let above = r#"schema = 1
[table.steps]
key = ["arch", "world"]
columns = ["host/two_shot", "host"]
rows.sm90-2 = ["..=1KiB", "any"]
rows.sm90-4 = ["-", "any"]
evidence = { kind = "measured" }
"#;
    let rows = rules(&[STEPS, above]);
    let told: Vec<String> = rows.iter().map(told).collect();
    assert_eq!(
        told,
        [
            "steps@sm90-2 5: host/two_shot ..=1KiB, host any",
            "steps@sm90-4 6: host any",
            "steps@sm10x-8 9: ipc/one_shot_push ..=128KiB blocks=128/world, \
             ipc/two_shot_pull ..=8MiB",
            "steps@gfx942-4..=6 10: ipc/one_shot_push ..=64KiB blocks=4, ipc/two_shot_pull any",
        ]
    );
    let facts = |rule: &Rule| {
        let kind = rule.evidence.as_ref().and_then(|e| e.kind).map(|kind| kind.to_string());
        (rule.last, rule.priority, kind.unwrap_or_default(), rule.when.op.map(|op| op.to_string()))
    };
    let op = Some("all_reduce".to_owned());
    assert_eq!(facts(&rows[0]), (true, 3, "measured".to_owned(), op.clone()));
    assert_eq!(
        facts(&rows[1]),
        (true, 3, "measured".to_owned(), op.clone()),
        "from the table below"
    );
    assert_eq!(facts(&rows[2]), (true, 3, "ported".to_owned(), op), "other rows keep theirs");
    assert_eq!(rows[1].when.world, Some(vec![(4, 4)]));
}

#[test]
fn one_row_can_be_stated_again_as_a_rule() {
    let above = r#"schema = 1
[rule."steps@sm90-2"]
chain = [{ use = "host" }]
[rule."steps@gfx942-4..=6"]
enabled = false"#;
    let rows = rules(&[STEPS, above]);
    let told: Vec<String> = rows.iter().map(told).collect();
    assert_eq!(
        told,
        [
            "steps@sm90-2 2: host any",
            "steps@sm10x-8 9: ipc/one_shot_push ..=128KiB blocks=128/world, \
             ipc/two_shot_pull ..=8MiB",
        ]
    );
    assert!(rows[0].last && rows[0].when.world == Some(vec![(2, 2)]));
}

#[test]
fn a_rule_and_a_table_of_two_files_cannot_share_a_name() {
    let rule = "schema = 1\n[rule.steps]\nchain = [{ use = 'host' }]";
    let told = isolated(&[STEPS, rule]).unwrap_err();
    assert!(told.contains("`steps` is a table of a lower file, not a rule"), "{told}");
    assert!(told.contains("[rule.\"steps@<row>\"]"), "{told}");
    let told = isolated(&[rule, STEPS]).unwrap_err();
    assert!(told.contains("`steps` is a rule of a lower file, not a table"), "{told}");
}

#[test]
fn ten_thousand_rows_are_stacked_in_no_time() {
    let row = |world: usize| format!("rows.{world} = [\"..=1KiB\", \"any\"]\n");
    let head = "schema = 1\n[table.t]\nkey = ['world']\ncolumns = ['ipc', 'host']\n";
    let text = head.to_owned() + &(1..=10_000).map(row).collect::<String>();
    let files = Files::of(&[&text, &text]);
    let start = std::time::Instant::now();
    let sources = crossover_policy::Sources::isolated(files.paths());
    let policy = sources.load(&support::registry()).unwrap().policy;
    assert!(policy.rules().len() > 10_000);
    assert_eq!(policy.rules()[9_999].origin.line, 10_004);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[test]
fn a_row_of_one_key_may_have_a_dash() {
    let policy = isolated(&[
        "schema = 1\n[table.t]\nkey = ['group']\ncolumns = ['host']\nrows.my-group = ['any']",
    ]);
    let rule = policy.unwrap().policy.rules()[0].clone();
    assert_eq!(
        (rule.id.as_str(), rule.when.group),
        ("t@my-group", Some(vec!["my-group".to_owned()]))
    );
}
