//! The schema for editors: it takes every policy that the program takes, and refuses what it can
//! see to be wrong.

use std::path::{Path, PathBuf};

use crossover_policy::schema::schema;
use jsonschema::Validator;
use serde_json::Value;

fn validator() -> Validator {
    let registry = crossover_backends::registry().expect("well-formed backends");
    jsonschema::draft202012::new(&schema(&registry)).expect("a schema")
}

/// A TOML text as an editor hands it to a validator.
fn as_json(text: &str) -> Value {
    fn convert(value: toml::Value) -> Value {
        match value {
            toml::Value::Datetime(date) => date.to_string().into(),
            toml::Value::Table(table) => {
                table.into_iter().map(|(key, value)| (key, convert(value))).collect()
            }
            toml::Value::Array(array) => array.into_iter().map(convert).collect(),
            other => serde_json::to_value(other).expect("a scalar"),
        }
    }
    convert(toml::Value::Table(text.parse().expect("TOML")))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every TOML file below a folder.
fn policies(folder: PathBuf) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(&folder).expect("a folder").map(|e| e.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let below = folders.into_iter().flat_map(policies);
    below.chain(files.into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml"))).collect()
}

#[test]
fn the_committed_schema_is_the_programs() {
    let registry = crossover_backends::registry().expect("well-formed backends");
    let mut now = serde_json::to_string_pretty(&schema(&registry)).expect("JSON");
    now.push('\n');
    let path = root().join("policies/schema.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &now).expect("a file");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == now, "policies/schema.json is old: BLESS=1 writes it anew");
}

#[test]
fn shipped_and_documented_policies_pass() {
    let validator = validator();
    let mut texts = Vec::new();
    for path in policies(root().join("policies")) {
        texts.push((path.display().to_string(), std::fs::read_to_string(&path).expect("a file")));
    }
    assert!(texts.len() >= 12, "the shipped files");
    let guide = include_str!("../../../docs/policy.md");
    for block in guide.split("```toml\n").skip(1) {
        texts.push((block.to_owned(), block.split("```").next().unwrap_or("").to_owned()));
    }
    for (name, text) in texts {
        let told: Vec<String> = validator
            .iter_errors(&as_json(&text))
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(told.is_empty(), "{name}\n{}", told.join("\n"));
    }
}

#[test]
fn what_an_editor_can_see_is_underlined() {
    let validator = validator();
    for (why, wrong) in [
        ("no schema", "[rule.a]\nchain = [{ use = 'host' }]"),
        ("another schema", "schema = 2"),
        ("unknown key", "schema = 1\n[rules.a]\nchain = [{ use = 'host' }]"),
        ("unknown key of a rule", "schema = 1\n[rule.a]\nchains = [{ use = 'host' }]"),
        ("unknown backend", "schema = 1\n[rule.a]\nchain = [{ use = 'hots' }]"),
        ("unknown algorithm", "schema = 1\n[rule.a]\nchain = [{ use = 'ipc/oneshot' }]"),
        ("no unit", "schema = 1\n[rule.a]\nchain = [{ use = 'host', bytes = '..=64' }]"),
        ("a number", "schema = 1\n[rule.a]\nchain = [{ use = 'host', bytes = 64 }]"),
        ("wrong unit", "schema = 1\n[rule.a]\nchain = [{ use = 'host', bytes = '64KB' }]"),
        ("unknown op", "schema = 1\n[rule.a]\nmatch = { op = 'allreduce' }"),
        ("rank-variant", "schema = 1\n[rule.a]\nmatch = { rank = 0 }"),
        ("world 0", "schema = 1\n[rule.a]\nmatch = { world = 0 }"),
        ("empty list", "schema = 1\n[rule.a]\nmatch = { world = [] }"),
        ("empty chain", "schema = 1\n[rule.a]\nchain = []"),
        ("unknown deviation", "schema = 1\n[contract]\naccept = ['lossy']"),
        (
            "a param out of range",
            "schema = 1\n[rule.a]\nchain = [{ use = 'ipc/all_gather', params = { blocks = -1 } }]",
        ),
        ("unknown evidence", "schema = 1\n[rule.a]\nevidence = { kind = 'guessed' }"),
        (
            "a cell",
            "schema = 1\n[table.t]\nkey = ['world']\ncolumns = ['host']\nrows.2 = ['never']",
        ),
        ("expect nothing", "schema = 1\n[[expect]]\nop = 'all_reduce'\nbytes = '1KiB'"),
        ("a bare size", "schema = 1\n[[expect]]\nop = 'all_reduce'\nbytes = '1'\nuse = 'host'"),
    ] {
        assert!(!validator.is_valid(&as_json(wrong)), "{why}: {wrong}");
    }
    let unknown_but_optional =
        "schema = 1\n[rule.a]\nchain = [{ use = 'sharp/tree', optional = true }]";
    assert!(validator.is_valid(&as_json(unknown_but_optional)));
}
