//! The policies in `docs/policy.md` are right.

mod support;

#[test]
fn every_policy_in_the_documentation_loads() {
    let text = include_str!("../../../docs/policy.md");
    let blocks: Vec<&str> = text.split("```toml\n").skip(1).collect();
    assert!(blocks.len() >= 3);
    for block in blocks {
        let policy = block.split("```").next().unwrap();
        if let Err(told) = support::isolated(&[policy]) {
            panic!("{policy}\n{told}");
        }
    }
}
