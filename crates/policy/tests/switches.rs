//! `rule:<id>` in `CROSSOVER_ENABLE` and `CROSSOVER_DISABLE`.

mod support;

use crossover_policy::{Effective, Settings, Sources};
use support::{Files, registry};

const FILE: &str = "schema = 1
[rule.off]
enabled = false
chain = [{ use = 'host' }]
[rule.on]
chain = [{ use = 'host' }]
[table.t]
key = ['world']
columns = ['host']
rows.2 = ['any']
rows.8 = ['any']";

fn load(variables: &[(&str, &str)]) -> Result<Effective, String> {
    let files = Files::of(&[FILE]);
    let path = files.paths()[0].display().to_string();
    let variables = variables.iter().copied().chain([("CROSSOVER_POLICY", path.as_str())]);
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let settings = Settings::load(variables, &[], &registry()).map_err(|e| e.to_string())?;
    Sources::of(&settings, "sm75").load(&registry()).map_err(|e| files.shown(&e))
}

/// Ids and layers of the user's rules.
fn ids(effective: &Effective) -> Vec<String> {
    let rules = effective.policy.rules().iter().filter(|rule| rule.layer.name() == "user");
    rules.map(|rule| rule.id.clone()).collect()
}

#[test]
fn rules_tables_and_rows_are_switched() {
    assert_eq!(ids(&load(&[]).unwrap()), ["t@2", "t@8", "on"]);
    let effective = load(&[("CROSSOVER_ENABLE", "rule:off")]).unwrap();
    assert_eq!(ids(&effective), ["t@2", "t@8", "off", "on"]);
    let statement = effective.statements("off").last().unwrap();
    assert_eq!((statement.field, statement.layer.name()), ("enabled", "env"));
    assert_eq!(statement.origin.to_string(), "CROSSOVER_ENABLE");
    let without = |words: &str| ids(&load(&[("CROSSOVER_DISABLE", words)]).unwrap());
    assert_eq!(without("rule:t"), ["on"]);
    assert_eq!(without("rule:t@8,rule:on"), ["t@2"]);
    assert_eq!(without("rule:on, ipc"), ["t@2", "t@8"]);
}

#[test]
fn a_rule_of_a_pack_that_is_not_in_force_is_left_alone() {
    let effective = load(&[("CROSSOVER_DISABLE", "rule:host-all-reduce-2")]).unwrap();
    assert_eq!(ids(&effective), ["t@2", "t@8", "on"]);
}

#[test]
fn what_is_not_there_cannot_be_switched() {
    let told = load(&[("CROSSOVER_DISABLE", "rule:on,rule:of")]).unwrap_err();
    let place = "no policy in force has a rule or a table `of`\n --> CROSSOVER_DISABLE:1:9";
    assert!(told.contains(place), "{told}");
    assert!(told.contains("did you mean `off`?"), "{told}");
    let told = load(&[("CROSSOVER_DISABLE", "rule:t"), ("CROSSOVER_ENABLE", "rule:t")]);
    let told = told.unwrap_err();
    assert!(told.contains("the rule `t` is enabled, and disabled as well"), "{told}");
}

#[test]
fn changes_of_a_pack_that_is_not_in_force_are_left_alone() {
    let user = |text: &str| {
        let files = Files::of(&[&format!("schema = 1\n{text}")]);
        let loaded = Sources::isolated(files.paths()).load(&registry());
        loaded.map(|effective| ids(&effective)).map_err(|e| files.shown(&e))
    };
    let none = Ok(Vec::new());
    let (rule, table) = ("[rule.host-all-reduce-2]\n", "[table.sm90-all-reduce-graph]\n");
    let (when, chain) = ("match = { world = 2 }\n", "chain = [{ use = 'host' }]\n");
    assert_eq!(user(&format!("{rule}priority = 1")), none);
    assert_eq!(user(&format!("{rule}{when}")), none);
    assert_eq!(user(&format!("{rule}{chain}")), none);
    assert_eq!(user(&format!("{rule}{when}{chain}")), Ok(vec!["host-all-reduce-2".to_owned()]));
    let rows = "key = ['nodes']\ncolumns = ['host']\nrows.1 = ['any']\n";
    assert_eq!(user(&format!("{table}{when}")), none);
    assert_eq!(user(&format!("{table}{rows}")), none);
    let whole = user(&format!("{table}{when}{rows}"));
    assert_eq!(whole, Ok(vec!["sm90-all-reduce-graph@1".to_owned()]));
}

#[test]
fn of_an_unknown_row_the_rows_of_its_table_are_told_and_else_no_rows() {
    let told = |words: &str| load(&[("CROSSOVER_DISABLE", words)]).unwrap_err();
    assert!(
        told("rule:t@4").ends_with("did you mean `t@2`? known: t@2, t@8"),
        "{}",
        told("rule:t@4")
    );
    assert!(told("rule:x").ends_with("known: floor, off, on, t"), "{}", told("rule:x"));
}
