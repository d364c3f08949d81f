//! The setting `strict`: a policy of which lint has something to say forms no group, on any rank.

use std::ffi::OsString;
use std::path::Path;

use crossover::Builder;
use crossover::bootstrap::{Launch, Place};

/// One shot returns after two shots took over.
const FLAPPING: &str = r#"schema = 1
[rule.flapping]
match = { op = "all_reduce" }
chain = [
  { use = "host/one_shot", bytes = "..=1KiB" },
  { use = "host/two_shot", bytes = "..=2KiB" },
  { use = "host/one_shot" },
]
"#;

/// The same, but for the return.
const PLAIN: &str = r#"schema = 1
[rule.plain]
match = { op = "all_reduce" }
chain = [{ use = "host/one_shot", bytes = "..=1KiB" }, { use = "host/two_shot" }]
"#;

/// Measured where nobody is.
const FOREIGN: &str = r#"schema = 1
[rule.plain]
match = { op = "all_reduce" }
chain = [{ use = "host/one_shot", bytes = "..=1KiB" }, { use = "host/two_shot" }]
evidence = { kind = "measured", device = "another machine", world = 2, date = "2026-11-30", raw = "nowhere" }
"#;

/// Forms a group of two ranks with these policies, each rank strict or not: what came of it, and
/// with which code a program would end.
fn form(policies: [&str; 2], strict: [&str; 2], on_divergence: &str) -> Vec<(String, u8)> {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::Unix(folder.path().join("meet"));
    let outcome = |rank: usize| {
        let file = folder.path().join(format!("rank{rank}.toml"));
        std::fs::write(&file, policies[rank]).expect("a file");
        let builder = Builder::from_variables([
            set("CROSSOVER_POLICY", &file),
            set("CROSSOVER_STRICT", Path::new(strict[rank])),
            set("CROSSOVER_ON_DIVERGENCE", Path::new(on_divergence)),
        ]);
        let launch = Launch::new(rank as u32, 2).named("strict", 0).at(place.clone());
        match builder.expect("variables that can be read").with_launch(launch).form() {
            Ok(group) => (group.world().to_string(), 0),
            Err(e) => {
                (e.to_string().replace(&format!("{}/", folder.path().display()), ""), e.exit_code())
            }
        }
    };
    std::thread::scope(|scope| {
        let outcome = &outcome;
        let ranks = [0, 1].map(|rank| scope.spawn(move || outcome(rank)));
        ranks.map(|rank| rank.join().expect("no rank panics")).into()
    })
}

fn set(name: &str, value: &Path) -> (OsString, OsString) {
    (name.into(), value.into())
}

#[test]
fn what_lint_finds_is_an_error_where_a_rank_is_strict() {
    let formed = vec![("2".to_owned(), 0); 2];
    assert_eq!(form([FLAPPING; 2], ["0"; 2], "error"), formed);
    assert_eq!(form([PLAIN; 2], ["1"; 2], "error"), formed);
    // Whoever measured it, it is no mistake.
    assert_eq!(form([FOREIGN; 2], ["1"; 2], "error"), formed);
    let refused = form([FLAPPING; 2], ["1"; 2], "error");
    for (rank, (told, code)) in refused.iter().enumerate() {
        assert_eq!(*code, 2);
        let start = "the setting `strict` refuses this policy for this group:\n\nwarning[W013]: ";
        assert!(told.starts_with(start), "{told}");
        assert!(told.contains(&format!("--> rank{rank}.toml:")), "{told}");
    }
}

#[test]
fn one_strict_rank_holds_all_to_it() {
    for (told, code) in form([FLAPPING; 2], ["0", "1"], "error") {
        assert!(told.starts_with("the setting `strict` refuses"), "{told}");
        assert_eq!(code, 2);
    }
    // It may be the rank that adopts the policy, and has no file of it.
    let outcomes = form([FLAPPING, PLAIN], ["0", "1"], "adopt_rank0");
    assert!(outcomes[0].0.starts_with("the setting `strict` refuses"), "{outcomes:?}");
    let (told, code) = &outcomes[1];
    let start = "rank 0 could not keep to `strict`: the setting `strict` refuses";
    assert!(told.starts_with(start) && told.contains("warning[W013]"), "{told}");
    assert_eq!(*code, 2);
}

#[test]
fn a_policy_that_is_not_in_force_is_not_looked_at() {
    let formed = vec![("2".to_owned(), 0); 2];
    assert_eq!(form([PLAIN, FLAPPING], ["1"; 2], "adopt_rank0"), formed);
    let refused = form([FLAPPING, PLAIN], ["1"; 2], "adopt_rank0");
    assert!(refused.iter().all(|(told, code)| told.contains("W013") && *code == 2), "{refused:?}");
}
