//! The policy in force, and where each part of it comes from.

use crossover_core::policy::{Policy, Rule};

use crate::diagnostic::{Code, Diagnostic};
use crate::file::Expect;
use crate::provenance::{Preset, Provenance, Statement};
use crate::target::Target;
use crate::verbs::Forced;

/// The policy in force, and what of it was forced.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Effective {
    /// What the core compiles. Chains no longer name what is disabled, so that its digest differs
    /// where ranks disable different things.
    pub policy: Policy,
    /// Choices that forming a group must honour or fail.
    pub forced: Vec<Forced>,
    /// Backends and algorithms that are switched off.
    pub disabled: Vec<Target>,
    pub(crate) disabled_rules: Vec<Rule>,
    /// The policy's own tests, from all files.
    pub(crate) expects: Vec<Expect>,
    pub(crate) provenance: Provenance,
}

impl Effective {
    /// The rules that a file or a verb switched off, with the chains that they would have.
    pub fn disabled_rules(&self) -> &[Rule] {
        &self.disabled_rules
    }

    /// The fields of a rule that somebody stated, and who did last, in the order in which they
    /// were; empty for a rule that a verb forces, and for one that is not there.
    pub fn statements(&self, rule: &str) -> &[Statement] {
        self.provenance.rules.get(rule).map_or(&[], |places| &places.statements)
    }

    /// Who stated the policy's side of the contract; what is not in the list is left to the engine.
    pub fn contract_statements(&self) -> &[Statement] {
        &self.provenance.contract
    }

    /// The presets of all files, each as the strongest layer has it, sorted by name.
    pub fn presets(&self) -> &[Preset] {
        &self.provenance.presets
    }

    /// A finding about a rule, or about a candidate of its chain (counted from 0), at the place
    /// where that is written.
    pub(crate) fn finding(
        &self,
        code: Code,
        rule: &Rule,
        candidate: Option<usize>,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        self.provenance.finding(code, rule, candidate, message, help)
    }

    /// A finding about an `[[expect]]` block, at its `use`.
    pub(crate) fn finding_of_expect(
        &self,
        code: Code,
        expect: &Expect,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let (file, span) = (&expect.origin.file, expect.span.clone());
        self.provenance.finding_in(file, span, code, message, help)
    }
}

#[cfg(test)]
mod tests {
    use crossover_core::policy::Layer;
    use crossover_core::registry::Registry;

    use super::*;
    use crate::sources::Sources;

    const TEXT: &str = r#"schema = 1
[preset.fast]
chain = [{ use = "p/q", optional = true }, { use = "p/r", optional = true }]
[rule.one]
chain = [
  { use = "a/b", bytes = "..=1KiB", optional = true },
  { preset = "fast" },
  { use = "a/b", optional = true },
]
[table.t]
key = ["world"]
columns = [{ use = "c/d", optional = true }, { use = "c/e", optional = true }]
rows.2 = ["-", "..=4KiB"]
[[expect]]
op = "all_reduce"
bytes = "1B"
use = "none"
"#;

    fn load() -> Effective {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.toml");
        std::fs::write(&path, TEXT).expect("a file");
        Sources::isolated(vec![path]).load(&Registry::empty()).expect("a right policy")
    }

    fn rule(effective: &Effective, id: &str) -> Rule {
        effective.policy.rules().iter().find(|r| r.id == id).expect("the rule").clone()
    }

    /// Line, column and what is underlined.
    fn place(diagnostic: &Diagnostic) -> (u32, u32, usize) {
        let width = diagnostic.to_string().matches('^').count();
        (diagnostic.line, diagnostic.column, width)
    }

    fn at(effective: &Effective, rule: &Rule, candidate: Option<usize>) -> (u32, u32, usize) {
        place(&effective.finding(Code::Gap, rule, candidate, "x".to_owned(), None))
    }

    #[test]
    fn a_finding_stands_under_the_rule_the_candidate_or_the_cell() {
        let effective = load();
        let one = rule(&effective, "one");
        assert_eq!(at(&effective, &one, None), (4, 7, "one".len()));
        let width = r#"{ use = "a/b", bytes = "..=1KiB", optional = true }"#.len();
        assert_eq!(at(&effective, &one, Some(0)), (6, 3, width));
        // Both of the preset's are where the rule names it.
        assert_eq!(at(&effective, &one, Some(1)), (7, 3, r#"{ preset = "fast" }"#.len()));
        assert_eq!(at(&effective, &one, Some(2)), at(&effective, &one, Some(1)));
        assert_eq!(at(&effective, &one, Some(3)).0, 8);
        assert_eq!(at(&effective, &one, Some(4)), (4, 7, 3), "there is no such candidate");
        let row = rule(&effective, "t@2");
        assert_eq!(at(&effective, &row, None), (13, 6, 1));
        assert_eq!(at(&effective, &row, Some(0)), (13, 16, r#""..=4KiB""#.len()));
    }

    #[test]
    fn a_finding_follows_candidates_when_others_are_disabled() {
        let effective = load();
        let mut one = rule(&effective, "one");
        one.chain.remove(0);
        assert_eq!(at(&effective, &one, Some(0)).0, 7);
        assert_eq!(at(&effective, &one, Some(2)).0, 8);
        one.chain[0].algorithm = Some("s".to_owned());
        assert_eq!(at(&effective, &one, Some(0)), (4, 7, 3), "it is not as it was written");
    }

    #[test]
    fn a_finding_about_what_no_file_has_names_its_origin() {
        let effective = load();
        let mut forced = rule(&effective, "one");
        forced.id = "use:host".to_owned();
        forced.origin.file = "--use".to_owned();
        forced.origin.line = 0;
        let told = effective.finding(Code::Gap, &forced, Some(0), "x".to_owned(), None);
        assert_eq!((told.file.as_str(), place(&told)), ("--use", (1, 1, "use:host".len())));
    }

    #[test]
    fn expectations_know_whether_their_file_was_only_included_and_are_there_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.toml");
        std::fs::write(&path, "schema = 1\ninclude = ['shipped:deterministic.toml']")
            .expect("a file");
        let of = |files: &[&std::path::Path]| {
            let files = files.iter().map(|path| path.to_path_buf()).collect();
            let effective = Sources::isolated(files).load(&Registry::empty()).expect("it is right");
            let file = "policies/deterministic.toml";
            let expects = effective.expects.iter().filter(|e| e.origin.file == file);
            expects.map(|e| (e.layer, e.included)).collect::<Vec<_>>()
        };
        let borrowed = [(Layer::User, true); 2];
        let named = [(Layer::User, false); 2];
        assert_eq!(of(&[&path]), borrowed);
        assert_eq!(of(&["shipped:deterministic.toml".as_ref()]), named);
        assert_eq!(of(&[&path, "shipped:deterministic.toml".as_ref()]), named);
    }

    #[test]
    fn a_finding_about_an_expectation_stands_under_its_use() {
        let effective = load();
        let expect = &effective.expects[0];
        let told = effective.finding_of_expect(Code::Expectation, expect, "x".to_owned(), None);
        assert_eq!((expect.origin.line, place(&told)), (17, (17, 7, r#""none""#.len())));
        assert!(told.file.ends_with("x.toml"), "{}", told.file);
    }
}
