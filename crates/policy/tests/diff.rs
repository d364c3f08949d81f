//! Which decisions a change of policy changes, in the words in which a reviewer reads it.

mod support;

use crossover_policy::Sources;
use crossover_policy::diff::diff;
use crossover_policy::lint::Options;
use support::{Files, registry};

/// The changes between two files over the floor, one a line.
#[track_caller]
fn changes(old: &str, new: &str) -> Vec<String> {
    let files = Files::of(&[old, new]);
    let [old, new] = [0, 1].map(|at| Sources::isolated(vec![files.paths()[at].clone()]));
    let changes = diff(&old, &new, &registry(), &Options::default());
    let changes = changes.unwrap_or_else(|e| panic!("{}", files.shown(&e)));
    changes.iter().map(ToString::to_string).collect()
}

const OLD: &str = "schema = 1
[rule.a]
match = { op = 'all_reduce', arch = 'sm90', world = '2..=8', dtype = ['bf16', 'f16'], mode = 'graph' }
chain = [{ use = 'ipc/one_shot_push', bytes = '..=128KiB' }, { use = 'ipc/two_shot_pull', bytes = '..=1MiB' }]";

#[test]
fn equal_policies_differ_in_nothing_whatever_their_text() {
    assert_eq!(changes(OLD, OLD), [""; 0]);
    let rewritten =
        OLD.replace("..=128KiB", "0B..131073B").replace("'2..=8'", "['2..=3', '4..=8']");
    assert_ne!(rewritten, OLD);
    assert_eq!(changes(OLD, &rewritten), [""; 0]);
}

#[test]
fn a_moved_threshold_is_one_line() {
    let new = OLD.replace("128KiB", "256KiB");
    assert_eq!(
        changes(OLD, &new),
        ["all_reduce f16, bf16 graph, sm90 x2..=8 \
          nvlink_full|nvlink_partial|pcie|mnnvl|multi_node: 131073B..=256KiB in multiples of 16 B  \
          ipc/two_shot_pull -> ipc/one_shot_push"]
    );
}

#[test]
fn params_count_and_so_does_who_is_left_with_nothing() {
    let new = OLD.replace("'ipc/one_shot_push',", "'ipc/one_shot_push', params = { blocks = 16 },");
    let told = changes(OLD, &new);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].ends_with("ipc/one_shot_push -> ipc/one_shot_push(blocks 16)"), "{told:?}");
    let last = format!("{OLD}\nlast = true");
    let groups = "sm90 x2..=8 nvlink_full|nvlink_partial|pcie|mnnvl|multi_node";
    assert_eq!(
        changes(OLD, &last),
        [
            format!(
                "all_reduce f16, bf16 graph, {groups}: any but multiples of 16 B  \
                     host/one_shot -> nothing"
            ),
            format!(
                "all_reduce f16, bf16 graph, {groups}: 1048577B.. in multiples of 16 B  \
                     host/one_shot -> nothing"
            ),
        ]
    );
}
