//! The policies in `docs/policy.md` are right.

mod support;

use crossover_policy::Sources;

#[test]
fn every_policy_in_the_documentation_loads() {
    let text = include_str!("../../../docs/policy.md");
    let blocks: Vec<&str> = text.split("```toml\n").skip(1).collect();
    assert!(blocks.len() >= 3);
    let registry = crossover_backends::registry().unwrap();
    for block in blocks {
        let policy = block.split("```").next().unwrap();
        let files = support::Files::of(&[policy]);
        if let Err(told) = Sources::isolated(files.paths()).load(&registry) {
            panic!("{policy}\n{told}");
        }
    }
}
