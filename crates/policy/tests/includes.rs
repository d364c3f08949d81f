//! `include`, and files that are compiled in.

mod support;

use std::path::PathBuf;

use crossover_policy::{Effective, PolicyError, Settings, Sources};
use support::registry;

/// Files by name in a folder; the first is loaded.
fn load(files: &[(&str, &str)]) -> Result<Effective, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("schema = 1\n{text}")).unwrap();
    }
    let sources = Sources::isolated(vec![folder.path().join(files[0].0)]);
    sources.load(&registry()).map_err(|e| e.to_string())
}

/// Ids of the user's rules with the names of their files.
fn outline(effective: &Effective) -> Vec<String> {
    let rules = effective.policy.rules().iter();
    let user = rules.filter(|rule| rule.layer.name() == "user");
    user.map(|rule| {
        let file = PathBuf::from(&rule.origin.file);
        format!("{} {}", rule.id, file.file_name().unwrap().to_string_lossy())
    })
    .collect()
}

fn rule(id: &str) -> String {
    format!("[rule.{id}]\nchain = [{{ use = 'host' }}]\n")
}

#[test]
fn what_is_included_lies_beneath_in_the_order_listed() {
    let top = "include = ['low/one.toml', 'two.toml']\n".to_owned() + &rule("top");
    let one = "include = ['../three.toml']\n".to_owned() + &rule("one") + &rule("shared");
    let (two, three) = (rule("two") + &rule("shared"), rule("three"));
    let effective = load(&[
        ("top.toml", &top),
        ("low/one.toml", &one),
        ("two.toml", &two),
        ("three.toml", &three),
    ])
    .unwrap();
    assert_eq!(
        outline(&effective),
        ["top top.toml", "two two.toml", "shared two.toml", "one one.toml", "three three.toml"]
    );
}

#[test]
fn a_file_that_two_include_is_laid_once_beneath_both() {
    let top = "include = ['left.toml', 'right.toml']\n";
    let left = "include = ['base.toml']\n[rule.base]\nchain = [{ use = 'ipc' }]\n";
    let right = "include = ['./low/../base.toml']\n".to_owned() + &rule("right");
    let files = [
        ("top.toml", top),
        ("left.toml", left),
        ("right.toml", &right),
        ("base.toml", &rule("base")),
        ("low/empty.toml", ""),
    ];
    let effective = load(&files).unwrap();
    assert_eq!(outline(&effective), ["right right.toml", "base left.toml"]);
    let base = effective.policy.rules().iter().find(|rule| rule.id == "base").unwrap();
    assert_eq!(base.chain[0].target(), "ipc", "the base is not laid over what changed it");
}

/// Ids of the user's rules with their first candidates, of files that are all named, in this order.
fn of_named(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, text) in files {
        std::fs::write(path(name), format!("schema = 1\n{text}")).unwrap();
    }
    let sources = Sources::isolated(files.iter().map(|(name, _)| path(name)).collect());
    let effective = sources.load(&registry()).unwrap();
    let rules = effective.policy.rules().iter().filter(|rule| rule.layer.name() == "user");
    rules.map(|rule| format!("{} {}", rule.id, rule.chain[0].target())).collect()
}

#[test]
fn a_file_that_is_named_is_stronger_than_those_named_before_though_they_include_it() {
    let first = "include = ['base.toml']
[rule.base]
chain = [{ use = 'ipc' }]
[rule.own]
chain = [{ use = 'ipc' }]";
    let base = rule("base");
    let files = [("first.toml", first), ("base.toml", base.as_str())];
    assert_eq!(of_named(&files), ["base host", "own ipc"]);
    let [first, base] = files;
    assert_eq!(of_named(&[base, first]), ["base ipc", "own ipc"]);
}

#[test]
fn what_lies_over_an_included_file_rests_on_it_still() {
    let first = "include = ['base.toml']\n[rule.base]\npriority = 7\n";
    let base = rule("base") + &rule("other");
    assert_eq!(
        of_named(&[("first.toml", first), ("base.toml", &base)]),
        ["base host", "other host"]
    );
}

#[test]
fn mistakes_in_a_file_that_is_laid_twice_are_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.toml"), "schema = 1\ninclude = ['b.toml']").unwrap();
    std::fs::write(path("b.toml"), "schema = 1\nrules = 3").unwrap();
    let sources = Sources::isolated(vec![path("a.toml"), path("b.toml")]);
    let told = sources.load(&registry()).unwrap_err().to_string();
    assert_eq!(told.matches("unknown key `rules`").count(), 1, "{told}");
}

#[test]
fn two_texts_of_one_name_are_both_laid() {
    let text = |id: &str| format!("schema = 1\n{}", rule(id));
    let sources = Sources::isolated(Vec::new()).with_text("x", text("a")).with_text("x", text("b"));
    let effective = sources.load(&registry()).unwrap();
    let rules = effective.policy.rules().iter().filter(|rule| rule.layer.name() == "program");
    let told: Vec<String> = rules.map(|rule| format!("{} {}", rule.id, rule.origin)).collect();
    assert_eq!(told, ["b x (2):2", "a x:2"]);
}

#[test]
fn shipped_files_are_named_from_anywhere() {
    let ids = |effective: &Effective| outline(effective).join(", ");
    let text = "include = ['shipped:host.toml']\n[rule.host-all-reduce-2]\nenabled = false";
    let effective = load(&[("top.toml", text)]).unwrap();
    assert!(ids(&effective).contains("host-all-reduce-4 host.toml"), "{}", ids(&effective));
    assert!(!ids(&effective).contains("host-all-reduce-2"), "{}", ids(&effective));

    let named = |name: &str| Sources::isolated(vec![name.into()]).load(&registry());
    let effective = named("shipped:host.toml").unwrap();
    assert!(ids(&effective).starts_with("host-amd-all-reduce@2 "), "{}", ids(&effective));
    assert_eq!(effective.policy.rules()[0].origin.file, "policies/host.toml");
    match named("shipped:hots.toml") {
        Err(e @ PolicyError::NotShipped { .. }) => {
            let told = e.to_string();
            let start = "no policy `shipped:hots.toml` is compiled in; did you mean `host.toml`?";
            assert!(told.starts_with(start), "{told}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_variable_takes_shipped_files_between_others() {
    let settings = |value: &str| {
        let variables = [("CROSSOVER_POLICY".into(), value.into())];
        Settings::load(variables, &[], &registry()).unwrap().policy
    };
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(settings("a.toml:b.toml"), paths(&["a.toml", "b.toml"]));
    assert_eq!(
        settings("a.toml:shipped:ported/x.toml:shipped:host.toml:b.toml"),
        paths(&["a.toml", "shipped:ported/x.toml", "shipped:host.toml", "b.toml"])
    );
    assert_eq!(settings("./shipped:a.toml"), paths(&["./shipped", "a.toml"]));
}
