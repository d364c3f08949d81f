//! Which decisions a change of policy changes, in the words in which a reviewer reads it.

mod support;

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{Dtype, Dtypes, Op, Ops};
use crossover_core::contract::{Contract, Deviations};
use crossover_core::eligibility::Eligibility;
use crossover_core::registry::Registry;
use crossover_policy::Sources;
use crossover_policy::diff::diff;
use crossover_policy::lint::Options;
use support::{Files, registry};

/// The changes between two files over the floor, one a line.
#[track_caller]
fn changes(old: &str, new: &str) -> Vec<String> {
    changes_with(&registry(), old, new, &Options::default())
}

#[track_caller]
fn changes_with(registry: &Registry, old: &str, new: &str, options: &Options) -> Vec<String> {
    let files = Files::of(&[old, new]);
    let [old, new] = [0, 1].map(|at| Sources::isolated(vec![files.paths()[at].clone()]));
    let changes = diff(&old, &new, registry, options);
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

/// A codec serves nobody who has not accepted it: what a policy says of it shows under a contract
/// that does.
#[test]
fn what_the_usual_contract_does_not_show_is_told_under_another() {
    let registry = crossover_backends::registry().unwrap();
    let text = |end: &str, library: &str| {
        format!(
            "schema = 1
[rule.codec]
last = true
match = {{ op = 'all_reduce', arch = 'gfx942', topology = 'xgmi_full', world = 8, dtype = 'f16', reduce_op = 'sum', mode = 'eager', caps = 'p2p' }}
chain = [{{ use = 'quick_reduce/int8', bytes = '1MiB..={end}' }}, {{ use = '{library}' }}, {{ use = 'nccl' }}]"
        )
    };
    let told =
        |new: &str, options: &Options| changes_with(&registry, &text("4MiB", "nccl"), new, options);
    let moved = text("8MiB", "nccl");
    let groups = "all_reduce f16 sum eager, gfx942 x8 xgmi_full";
    assert_eq!(
        told(&moved, &Options::default()),
        [format!(
            "{groups}, caps p2p: 4194305B..=8MiB in multiples of 16 B  nccl -> quick_reduce/int8 \
             under the loosest contract"
        )]
    );
    // An engine that is known has no other contract.
    let exact = Options { contract: Some(Contract::DEFAULT), ..Options::default() };
    assert_eq!(told(&moved, &exact), [""; 0]);
    let loose = Contract { accept: Deviations::ALL, ..Contract::DEFAULT };
    let accepting = Options { contract: Some(loose), ..Options::default() };
    assert_eq!(
        told(&moved, &accepting),
        [format!(
            "{groups}, caps p2p: 4194305B..=8MiB in multiples of 16 B  nccl -> quick_reduce/int8"
        )]
    );
    // What the usual contract shows is told under it alone.
    let peers = told(&text("4MiB", "ipc/two_shot_pull"), &Options::default());
    assert!(peers.iter().all(|line| !line.contains("under")), "{peers:#?}");
    // Behind the library, peers serve those alone who demand more than it has.
    let behind =
        text("4MiB", "nccl").replace("{ use = 'nccl' }]", "{ use = 'ipc/two_shot_pull' }]");
    let lines = told(&behind, &Options::default());
    assert_eq!(
        lines,
        [format!("{groups}, caps p2p: any  nothing -> ipc/two_shot_pull under size_invariant")]
    );
}

/// Takes bytes of all sizes, and by others multiples alone.
static STEPS: Descriptor = Descriptor {
    id: "steps",
    version: "0",
    settings: &[],
    algorithms: &[of_multiples("all", 1), of_multiples("fours", 4), of_multiples("packs", 16)],
};
const fn of_multiples(name: &'static str, multiple_of: u64) -> Algorithm {
    Algorithm {
        name,
        eligibility: Eligibility {
            ops: Ops::of(&[Op::AllGather]),
            dtypes: Dtypes::of(&[Dtype::U8]),
            multiple_of,
            ..Eligibility::EVERYTHING
        },
        params: &[],
    }
}

#[test]
fn sizes_between_the_finest_and_the_coarsest_multiple_are_compared_as_well() {
    let registry = Registry::empty().declaring(&STEPS).unwrap();
    let text = |chain: &[&str]| {
        let chain: Vec<String> =
            chain.iter().map(|name| format!("{{ use = 'steps/{name}' }}")).collect();
        format!(
            "schema = 1\n[rule.r]\nmatch = {{ op = 'all_gather', topology = 'host', mode = 'eager' }}\n\
             chain = [{}]",
            chain.join(", ")
        )
    };
    let told = |old: &[&str], new: &[&str]| {
        let lines = changes_with(&registry, &text(old), &text(new), &Options::default());
        let sizes = lines.iter().map(|line| line.split_once(": ").unwrap().1.to_owned());
        sizes.collect::<Vec<String>>()
    };
    let old = ["packs", "fours", "all"];
    assert_eq!(
        told(&old, &["packs", "all"]),
        ["any in multiples of 4 B but multiples of 16 B  steps/fours -> steps/all"]
    );
    assert_eq!(
        told(&old, &["fours", "all"]),
        ["any in multiples of 16 B  steps/packs -> steps/fours"]
    );
    assert_eq!(told(&old, &["packs", "fours"]), ["any but multiples of 4 B  steps/all -> nothing"]);
}

/// A name stands for itself, and one more thing for all names that nobody wrote.
#[test]
fn devices_that_no_rule_names_are_told_as_any_other() {
    let new = OLD.replace("match = {", "match = { device = ['NVIDIA H200', 'NVIDIA H100'],");
    assert_ne!(new, OLD);
    let told = changes(OLD, &new);
    assert!(!told.is_empty());
    assert!(told.iter().all(|line| line.contains(", device any other: ")), "{told:#?}");
    let told = changes(&new, &new.replace("128KiB", "256KiB"));
    let named = |line: &String| line.contains(", device NVIDIA H100|NVIDIA H200: ");
    assert!(!told.is_empty() && told.iter().all(named), "{told:#?}");
}
