//! The node's own files, and what a tuner writes.

mod support;

use std::path::Path;

use crossover_core::policy::Layer;
use crossover_policy::{Effective, PolicyError, Sources};
use support::{Files, registry};

fn rule(id: &str, more: &str) -> String {
    format!("schema = 1\n[rule.{id}]\nchain = [{{ use = 'host' }}]\n{more}\n")
}

fn write(folder: &Path, files: &[(&str, String)]) {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn load(site: &Path, user: &[&str]) -> Result<Effective, PolicyError> {
    let files = Files::of(user);
    Sources::isolated(files.paths()).with_site(site.to_owned()).load(&registry())
}

/// `id layer` of the rules above the floor.
fn outline(effective: &Effective) -> Vec<String> {
    let rules = effective.policy.rules().iter();
    let above = rules.filter(|rule| rule.layer != Layer::Builtin);
    above.map(|rule| format!("{} {}", rule.id, rule.layer)).collect()
}

#[test]
fn files_of_the_folders_are_laid_by_name_and_nothing_else_is() {
    let site = tempfile::tempdir().unwrap();
    write(
        site.path(),
        &[
            ("policy.d/20-b.toml", rule("b", "")),
            ("policy.d/10-a.toml", rule("a", "")),
            ("policy.d/.hidden.toml", rule("hidden", "")),
            ("policy.d/note.txt", "no policy".to_owned()),
            ("policy.d/old.toml.bak", "no policy".to_owned()),
            ("policy.d/deep/c.toml", rule("deep", "")),
            ("policy.d/folder.toml/d.toml", rule("deeper", "")),
            ("tuned.d/t.toml", rule("t", "")),
            ("other.toml", rule("other", "")),
        ],
    );
    let effective = load(site.path(), &[&rule("mine", "")]).unwrap();
    assert_eq!(outline(&effective), ["mine user", "t tuned", "b site", "a site"]);
}

#[test]
fn a_node_without_files_has_none_and_a_folder_that_is_no_folder_is_told() {
    let site = tempfile::tempdir().unwrap();
    assert_eq!(outline(&load(site.path(), &[]).unwrap()), [""; 0]);
    assert_eq!(outline(&load(&site.path().join("absent"), &[]).unwrap()), [""; 0]);
    std::fs::write(site.path().join("policy.d"), "a file").unwrap();
    match load(site.path(), &[]) {
        Err(e @ PolicyError::UnreadableFolder { .. }) => {
            let folder = site.path().join("policy.d");
            let start = format!("the folder of policies {} cannot be read: ", folder.display());
            assert!(e.to_string().starts_with(&start), "{e}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn isolated_sources_read_no_site() {
    let effective = Sources::isolated(Vec::new()).load(&registry()).unwrap();
    assert_eq!(outline(&effective), [""; 0]);
}

#[test]
fn a_tuned_rule_is_for_the_device_that_it_was_tuned_on() {
    let site = tempfile::tempdir().unwrap();
    let tuned = "evidence = { kind = 'tuned', device = 'NVIDIA H200' }";
    let other = "match = { device = ['NVIDIA H100', 'NVIDIA H200'] }\n".to_owned() + tuned;
    write(
        site.path(),
        &[
            ("tuned.d/a.toml", rule("a", tuned)),
            ("tuned.d/b.toml", rule("b", &other)),
            ("tuned.d/c.toml", rule("c", "evidence = { kind = 'measured', device = 'B200' }")),
            ("tuned.d/d.toml", rule("d", "evidence = { kind = 'tuned' }")),
        ],
    );
    let policy = load(site.path(), &[]).unwrap().policy;
    let device = |id: &str| {
        policy.rules().iter().find(|rule| rule.id == id).expect("the rule").when.device.clone()
    };
    let names = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
    assert_eq!(device("a"), names(&["NVIDIA H200"]));
    assert_eq!(device("b"), names(&["NVIDIA H100", "NVIDIA H200"]));
    assert_eq!(device("c"), None);
    assert_eq!(device("d"), None);
}
