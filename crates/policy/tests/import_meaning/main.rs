//! An imported policy decides as the system decides that its file is from.
//!
//! What that system does is said here once more, row by row, from its own documentation and source:
//! these files know nothing of the importers.

mod json;
mod ucc;

use std::collections::BTreeSet;

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::facts::{Cap, Caps, GroupProfile, Topology};
use crossover_core::plan::{Choice, Offer, OfferState, Plan};
use crossover_policy::Sources;
use crossover_policy::import::{Format, import};
use proptest::prelude::*;

/// The plan of an imported file for a group, over the floor.
fn plans(format: Format, text: &str, groups: &[GroupProfile]) -> Vec<Plan> {
    let imported = import(format, "random", text).unwrap_or_else(|e| panic!("{text}\n{}", e[0]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, imported.policy).unwrap();
    let registry = crossover_backends::registry().unwrap();
    let effective = Sources::isolated(vec![path]).load(&registry);
    let policy = effective.unwrap_or_else(|e| panic!("{text}\n{e}")).policy;
    let open = |descriptor| Offer { descriptor, state: OfferState::Open { capacity: u64::MAX } };
    let compile = |group: &GroupProfile| {
        let offers = registry.descriptors().into_iter().map(open).collect();
        Plan::compile(group.clone(), CONTRACT, &policy, offers)
    };
    groups.iter().map(compile).collect()
}

const CONTRACT: Contract = Contract { determinism: Determinism::Any, accept: Deviations::ALL };

fn group(arch: &str, world: u32, nodes: u32, topology: Topology) -> GroupProfile {
    GroupProfile {
        arch: arch.to_owned(),
        device: String::new(),
        world,
        nodes,
        topology,
        tag: "world".to_owned(),
        caps: Caps::of(&[Cap::P2p]),
        caches: Default::default(),
    }
}

fn call(op: Op) -> CallKind {
    let reduce_op = ReduceOp::Sum;
    CallKind { op, dtype: Dtype::F32, reduce_op, mode: Mode::Eager, contract: CONTRACT }
}

/// Input bytes around everything that a file names, for a system that counts `scale` times them.
fn around(named: &[u64], scale: u64) -> BTreeSet<u64> {
    let near = |n: &u64| [n / scale, n.div_ceil(scale)];
    let points = named.iter().flat_map(near).chain([0, u64::MAX / scale]);
    points.flat_map(|p| [p.saturating_sub(1), p, p.saturating_add(1)]).collect()
}

/// The rule that decided, if it is an imported one.
fn imported_rule<'p>(plan: &'p Plan, choice: Option<Choice>, prefix: &str) -> Option<&'p str> {
    let rule = plan.rule_of(choice?)?;
    rule.id.starts_with(prefix).then_some(rule.id.as_str())
}

/// A row of NCCL's tuner file.
#[derive(Clone, Debug)]
struct Row {
    op: Op,
    min: u64,
    max: u64,
    algorithm: usize,
    protocol: usize,
    channels: i64,
    nodes: i64,
    ranks: i64,
}

const ALGORITHMS: [&str; 7] =
    ["tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"];
const PROTOCOLS: [&str; 3] = ["ll", "ll128", "simple"];

impl Row {
    fn text(&self) -> String {
        let collective = match self.op {
            Op::AllReduce => "allreduce",
            Op::AllGather => "allgather",
            Op::ReduceScatter => "reducescatter",
            Op::Broadcast => "broadcast",
            Op::AllToAll => unreachable!("NCCL's tuner has none"),
        };
        let Row { min, max, channels, nodes, ranks, .. } = self;
        let (algorithm, protocol) = (ALGORITHMS[self.algorithm], PROTOCOLS[self.protocol]);
        format!("{collective},{min},{max},{algorithm},{protocol},{channels},{nodes},{ranks}\n")
    }

    /// Whether NCCL's cost table has an entry at all: `tuning.cc` of 2.30.
    fn in_cost_table(&self) -> bool {
        let (algorithm, protocol) = (ALGORITHMS[self.algorithm], PROTOCOLS[self.protocol]);
        let simple = protocol == "simple";
        match (self.op, algorithm) {
            (_, "ring") => true,
            (Op::Broadcast, _) => false,
            (Op::AllReduce, "pat") => false,
            (Op::AllReduce, "nvls" | "nvls_tree") => simple,
            (Op::AllReduce, _) => true,
            (_, "pat" | "nvls") => simple,
            (_, "collnet_direct") => true,
            _ => false,
        }
    }

    fn matches(&self, op: Op, bytes: u64, world: u32, nodes: u32) -> bool {
        // The plug-in is told the greater of what a rank sends and what it receives.
        let told = if op == Op::AllGather { bytes * u64::from(world) } else { bytes };
        self.op == op
            && (self.min..=self.max).contains(&told)
            && (self.nodes == -1 || self.nodes == i64::from(nodes))
            && (self.ranks == -1 || self.ranks == i64::from(world))
            && self.in_cost_table()
    }
}

fn row() -> impl Strategy<Value = Row> {
    let op = prop::sample::select(vec![
        Op::AllReduce,
        Op::AllReduce,
        Op::AllGather,
        Op::ReduceScatter,
        Op::Broadcast,
    ]);
    let size = prop::sample::select(vec![0, 1, 7, 8, 1023, 1024, 4096, 65536, 65537, u64::MAX]);
    (
        op,
        (size.clone(), size),
        (prop_oneof![3 => Just(1usize), 2 => 0..7usize], 0..3usize),
        -1..9i64,
        prop::sample::select(vec![-1, -1, 1, 2]),
        prop::sample::select(vec![-1, -1, 2, 4, 8]),
    )
        .prop_map(|(op, (a, b), (algorithm, protocol), channels, nodes, ranks)| Row {
            op,
            min: a.min(b),
            max: a.max(b),
            algorithm,
            protocol,
            channels,
            nodes,
            ranks,
        })
}

/// A set of Open MPI's rules, in the classic format.
#[derive(Clone, Debug)]
struct Set {
    world: u64,
    /// Sizes and algorithms.
    rules: Vec<(u64, u64)>,
}

fn sets() -> impl Strategy<Value = Vec<Set>> {
    let rest = prop::collection::btree_map(1..5000u64, 0..8u64, 0..4);
    let rules = (0..8u64, rest)
        .prop_map(|(first, rest)| std::iter::once((0, first)).chain(rest).collect::<Vec<_>>());
    prop::collection::btree_map(0..10u64, rules, 1..4)
        .prop_map(|sets| sets.into_iter().map(|(world, rules)| Set { world, rules }).collect())
}

fn classic(collective: usize, sets: &[Set]) -> String {
    let mut text = format!("1\n{collective}\n{}\n", sets.len());
    for set in sets {
        text += &format!("{} # ranks\n{}\n", set.world, set.rules.len());
        for (size, algorithm) in &set.rules {
            text += &format!("{size} {algorithm} 0 0\n");
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_nccl_tuner_file_decides_as_before(rows in prop::collection::vec(row(), 1..8)) {
        let text: String = rows.iter().map(Row::text).collect();
        let groups = [(2, 1), (4, 1), (8, 1), (4, 2), (8, 2), (16, 4)].map(|(world, nodes)| {
            let one = Topology::NvlinkFull;
            group("sm90", world, nodes, if nodes == 1 { one } else { Topology::MultiNode })
        });
        let named: Vec<u64> = rows.iter().flat_map(|r| [r.min, r.max]).collect();
        for (plan, group) in plans(Format::NcclTuner, &text, &groups).iter().zip(&groups) {
            for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast] {
                let scale = if op == Op::AllGather { u64::from(group.world) } else { 1 };
                for bytes in around(&named, scale).into_iter().filter(|b| b.checked_mul(scale).is_some()) {
                    let wanted = rows.iter().find(|r| r.matches(op, bytes, group.world, group.nodes));
                    let choice = plan.decide(&call(op), bytes);
                    let rule = imported_rule(plan, choice, "nccl-tuner-");
                    let case = format!("{op} {bytes} B, {} ranks, {} nodes\n{text}", group.world, group.nodes);
                    prop_assert_eq!(rule.is_some(), wanted.is_some(), "{:?} {}", rule, case);
                    let (Some(wanted), Some(choice)) = (wanted, choice) else { continue };
                    // `auto` is the params' first word, and 0 leaves the channels to the library.
                    let params = [
                        wanted.algorithm as u64 + 1,
                        wanted.protocol as u64 + 1,
                        wanted.channels.max(0) as u64,
                    ];
                    prop_assert_eq!(plan.name_of(choice), "nccl/pinned", "{}", case);
                    prop_assert_eq!(plan.params_of(choice), &params[..], "{}", case);
                }
            }
        }
    }

    #[test]
    fn open_mpi_rules_decide_as_before(sets in sets(), gather in any::<bool>()) {
        let (op, collective) = if gather { (Op::AllGather, 0) } else { (Op::AllReduce, 2) };
        let text = classic(collective, &sets);
        let groups = [2, 3, 4, 7, 8, 9, 10].map(|world| group("host", world, 1, Topology::Host));
        let named: Vec<u64> = sets.iter().flat_map(|s| s.rules.iter().map(|(size, _)| *size)).collect();
        for (plan, group) in plans(Format::OpenMpi, &text, &groups).iter().zip(&groups) {
            let scale = if gather { u64::from(group.world) } else { 1 };
            for bytes in around(&named, scale).into_iter().filter(|b| b.checked_mul(scale).is_some()) {
                // The nearest set and rule that are not greater; smaller groups have the first set.
                let nearest = sets.iter().rfind(|s| s.world <= u64::from(group.world));
                let set = nearest.or(sets.first());
                let nearest = set.and_then(|s| s.rules.iter().rfind(|(size, _)| *size <= bytes * scale));
                let algorithm = nearest.map(|(_, algorithm)| *algorithm).filter(|a| *a != 0);
                let choice = plan.decide(&call(op), bytes);
                let rule = imported_rule(plan, choice, "openmpi-tuned-");
                let case = format!("{op} {bytes} B, {} ranks\n{text}", group.world);
                prop_assert_eq!(rule.is_some(), algorithm.is_some(), "{:?} {}", rule, case);
                let (Some(algorithm), Some(choice)) = (algorithm, choice) else { continue };
                let wanted = match (gather, algorithm) {
                    (false, 4..=6) => "host/two_shot",
                    _ => "host/one_shot", // for a gather, the first of two that do the same
                };
                prop_assert_eq!(plan.name_of(choice), wanted, "{}", case);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn bytes_of_any_kind_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        pieces in prop::collection::vec("[-0-9a-z,:#@\\[\\]{}\" .\n\t=]{0,6}|allreduce|,|:|#|inf|\n|4k|0 0 0 0\n|1\n|\\[2-8\\]|UCC_TL_UCP_TUNE=|é|\u{feff}|\\{\"collectives\":", 0..30),
    ) {
        for text in [String::from_utf8_lossy(&bytes).into_owned(), pieces.concat()] {
            for format in [Format::NcclTuner, Format::UccTune, Format::OpenMpi] {
                match import(format, "random", &text) {
                    Ok(imported) => for told in imported.losses.iter().chain(&imported.notes) {
                        prop_assert!(told.to_string().contains('^'));
                    },
                    Err(errors) => {
                        prop_assert!(!errors.is_empty());
                        let lines = text.split('\n').count() as u32;
                        for error in errors {
                            prop_assert!((1..=lines).contains(&error.line), "{}", error);
                            prop_assert!(error.help.is_some() && error.to_string().contains('^'));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn deep_json_is_refused_and_not_followed() {
    let deep = "[".repeat(200_000);
    let error = import(Format::OpenMpi, "deep", &format!("{{\"collectives\":{deep}")).unwrap_err();
    assert!(error[0].message.contains("depth"), "{}", error[0].message);
}
