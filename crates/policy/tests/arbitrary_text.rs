//! Whatever stands in a file, loading it ends in a policy or in words.

mod support;

use crossover_policy::{PolicyError, Sources};
use proptest::prelude::*;
use support::{Files, registry};

/// A policy with everything in it, to be damaged.
const WHOLE: &str = r#"schema = 1
include = ["shipped:host.toml"]
[contract]
determinism = "rank_consistent"
accept = ["signed_zero_flush"]
[preset.fast]
chain = [{ use = "ipc", bytes = "..1MiB" }, { use = "nvls/lamport_all_gather", params = { shape = "ring", early = true } }]
[rule.small-all-gather]
match = { op = "all_gather", group = "tp", topology = ["nvlink_full", "mnnvl"], world = [2, "4..=8"] }
chain = [
  { use = "nvls/lamport_all_gather", bytes = "1B..=64KiB" }, # größer
  { use = "ipc/all_gather", bytes = "1B..=64KiB", bytes_of = "output", optional = true },
  { use = "ipc/one_shot_push", params = { blocks = "128/world" } },
  { preset = "fast" },
]
priority = -3
last = true
evidence = { kind = "ported", device = "B200", world = 4, mode = "graph", date = 2026-01-31 }
[rule.floor]
enabled = false
[table.steps]
match = { op = "all_reduce", mode = "graph" }
key = ["arch", "world"]
columns = ["ipc/one_shot_push", "ipc/two_shot_pull", { use = "nccl", optional = true }]
rows.sm90-8 = ["..=128KiB", "-", "any"]
rows."sm10x-2..=4" = [{ bytes = "..=64KiB", params = { blocks = 16 } }, "any", "-"]
params."ipc/one_shot_push" = { blocks = 32 }
bytes_of = "output"
evidence = { kind = "tuned", device = "B200" }
[[expect]]
op = "all_reduce"
arch = "sm90"
world = 8
mode = "graph"
topology = "nvlink_full"
caps = ["p2p", "multicast"]
dtype = "bf16"
accept = []
bytes = "128KiB"
use = "ipc/one_shot_push"
[[expect]]
op = "all_gather"
bytes = "1B"
use = "none"
"#;

/// Loads it; what is said of it must be printable, and point into the file.
fn load(text: &str) {
    let files = Files::of(&[text]);
    match Sources::isolated(files.paths()).load(&registry()) {
        Ok(_) => {}
        Err(PolicyError::Mistakes(mistakes)) => {
            assert!(!mistakes.is_empty());
            for mistake in mistakes {
                let lines = text.split('\n').count() as u32;
                assert!((1..=lines).contains(&mistake.line), "{mistake}");
                assert!(mistake.column >= 1 && mistake.to_string().contains('^'), "{mistake}");
            }
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn the_whole_one_is_right() {
    support::isolated(&[WHOLE]).unwrap();
}

#[test]
fn mistakes_in_long_lines_are_shown_where_they_are() {
    let far = format!(
        "schema = 1\n[rule.x]\nchain = [{}{{ use = \"host/nope\" }} ]\n",
        " ".repeat(100_000)
    );
    let long_name = format!("schema = 1\n[rule.{}]\nchian = []\n", "x".repeat(100_000));
    for text in [far, long_name, "[".repeat(200_000)] {
        load(&text);
        let files = Files::of(&[&text]);
        let told =
            Sources::isolated(files.paths()).load(&registry()).expect_err("wrong").to_string();
        let longest =
            told.lines().filter(|line| line.contains(" | ")).map(|line| line.chars().count());
        assert!(longest.max().expect("an excerpt") < 200, "{}", &told[..300]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn text_of_any_kind(text in "(\\PC|\n|\r|\t|\0|[\\[\\]{}=.,\"'#]){0,80}") {
        load(&text);
    }

    #[test]
    fn a_damaged_policy(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize), 1..4),
        patch in "(\\PC|\n|[\\[\\]{}=.,\"'#0-9@-]){0,4}|true|\\[\\]|\\{\\}|0x1f|9\\.0|\"any\"|\"-\"\
                  |rule|match|table|steps|preset|rows|key|world|\"fast\"|/world|shipped:",
    ) {
        let mut characters: Vec<char> = WHOLE.chars().collect();
        for (at, length) in cuts {
            let at = at.index(characters.len());
            let end = (at + length).min(characters.len());
            characters.splice(at..end, patch.chars());
        }
        load(&characters.into_iter().collect::<String>());
    }
}
