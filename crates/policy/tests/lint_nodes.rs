//! A group has as many ranks as nodes at least: a rule for many nodes is asked of groups that large, and
//! one for more nodes than ranks matches nothing.

mod support;

use crossover_policy::Sources;
use crossover_policy::lint::{Options, lint};
use support::Files;

/// The messages on a rule for these groups.
fn told(key: &str) -> Vec<String> {
    let text = format!(
        "schema = 1\n[rule.far]\nmatch = {{ op = 'all_reduce', topology = 'multi_node', {key} }}\n\
         chain = [{{ use = 'nccl' }}]\n"
    );
    let files = Files::of(&[&text]);
    let registry = crossover_backends::registry().unwrap();
    let report = lint(&Sources::isolated(files.paths()), &registry, &Options::default()).unwrap();
    let of_rule = report.findings.into_iter().filter(|finding| finding.code.name() == "W006");
    of_rule.map(|finding| finding.message).collect()
}

#[test]
fn groups_of_many_nodes_are_looked_at() {
    for key in [
        "nodes = 2",
        "nodes = 40",
        "nodes = 100",
        "nodes = 1024",
        "nodes = 40, world = '2..=50'",
        "nodes = '300..=400', world = '..=300'",
    ] {
        assert_eq!(told(key), [""; 0], "{key}");
    }
    for key in ["nodes = 40, world = '2..=39'", "nodes = '300..=400', world = '2..=299'"] {
        assert_eq!(told(key).len(), 1, "{key}: {:?}", told(key));
    }
}
