//! The shipped policies: all parse, packs serve every call of their architectures, and overlays change
//! what they say they change.

use std::path::{Path, PathBuf};

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations, OrderClass};
use crossover_core::facts::{Cap, Caps, GroupProfile, Topology};
use crossover_core::plan::{Choice, Offer, OfferState, Plan};
use crossover_core::registry::Registry;
use crossover_policy::{Override, Settings, Sources};
use crossover_tests::ported::{sglang, sizes_around};

/// The architectures that have a pack, with the topologies of their devices.
const PACKS: [(&str, &[Topology]); 6] = [
    ("sm80", &[Topology::NvlinkFull, Topology::Pcie, Topology::MultiNode]),
    ("sm90", NVIDIA),
    ("sm100", NVIDIA),
    ("gfx90a", AMD),
    ("gfx942", AMD),
    ("gfx950", AMD),
];
const NVIDIA: &[Topology] = &[
    Topology::NvlinkFull,
    Topology::NvlinkPartial,
    Topology::Pcie,
    Topology::Mnnvl,
    Topology::MultiNode,
];
const AMD: &[Topology] = &[Topology::XgmiFull, Topology::Pcie, Topology::MultiNode];

#[test]
fn every_shipped_file_can_stand_alone() {
    let mut files: Vec<PathBuf> = [policies(), policies().join("ported")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 14, "{files:?}");
    for file in files {
        let loaded = Sources::isolated(vec![file.clone()]).load(&registry());
        loaded.unwrap_or_else(|told| panic!("{}: {told}", file.display()));
    }
}

#[test]
fn packs_serve_every_call() {
    for (arch, topologies) in PACKS {
        let mut calls = 0;
        for &topology in topologies {
            for world in [2, 3, 4, 5, 6, 7, 8, 16, 64] {
                for caps in [&[Cap::P2p][..], &[Cap::P2p, Cap::Multicast], &[]] {
                    let plan = plan(arch, &[], group(arch, world, topology, caps));
                    for call in every_kind(Contract::DEFAULT) {
                        let unserved = plan.sweep(&call).into_iter().find(|b| b.target.is_none());
                        // Nobody is known to reduce 8-bit floats on devices.
                        let nobody = call.op.reduces()
                            && matches!(call.dtype, Dtype::F8E4M3 | Dtype::F8E5M2);
                        let from = unserved.map(|band| band.from);
                        let want = nobody.then_some(0);
                        assert_eq!(from, want, "{arch} x{world} {topology} {caps:?} {call:?}");
                        calls += 1;
                    }
                }
            }
        }
        // Two ops that reduce, by five reduce ops, and three that copy; 12 types, two modes.
        assert_eq!(calls, topologies.len() * 9 * 3 * (2 * 5 + 3) * 12 * 2);
    }
}

#[test]
fn packs_have_something_faster_than_the_library_for_decode_sizes() {
    for (arch, topologies) in PACKS {
        let full = topologies[0];
        for world in (2..=8).chain((arch == "sm100").then_some(16)) {
            let plan = plan(arch, &[], group(arch, world, full, &[Cap::P2p]));
            for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter] {
                for bytes in [16 << 10, 64 << 10, 512 << 10] {
                    let call = call(op, Dtype::Bf16, Contract::DEFAULT);
                    let served = name(&plan, &call, bytes);
                    assert!(served.starts_with("ipc/"), "{arch} x{world} {op} {bytes}: {served}");
                }
            }
        }
    }
}

/// The packs whose all-reduces start from SGLang's tables, told independently; but for two H200, which were measured. Of Rubin's
/// numbers the pack has those of graphs, for both modes.
#[test]
fn all_reduces_on_nvlink_are_where_sglang_found_them() {
    let sizes = sizes_around(sglang::constants());
    for (arch, capability) in [("sm90", 90), ("sm100", 100), ("sm103", 103), ("sm107", 107)] {
        for world in (2..=8).chain((capability >= 100).then_some(16)) {
            for caps in [&[Cap::P2p][..], &[Cap::P2p, Cap::Multicast]] {
                let plan = plan(arch, &[], group(arch, world, Topology::NvlinkFull, caps));
                for mode in [Mode::Graph, Mode::Eager] {
                    let numbers = if capability == 107 { Mode::Graph } else { mode };
                    let call =
                        CallKind { mode, ..call(Op::AllReduce, Dtype::F16, plan.contract()) };
                    for &bytes in &sizes {
                        let switch = caps.len() == 2 && bytes.is_multiple_of(16);
                        let (found, ..) =
                            sglang::all_reduce(capability, world, numbers, switch, bytes);
                        let want = match (arch, world) {
                            ("sm90", 2) => between_two_h200(bytes),
                            _ => found,
                        };
                        assert_eq!(
                            name(&plan, &call, bytes),
                            want,
                            "{arch} x{world} {mode} {bytes}"
                        );
                    }
                }
            }
        }
    }
}

/// As measured on two H200 (docs/measurements/two-h200).
fn between_two_h200(bytes: u64) -> &'static str {
    match bytes {
        0..=524_288 => "ipc/one_shot_push",
        524_289..=134_217_728 => "ipc/one_shot_pull",
        _ => "nccl",
    }
}

#[test]
fn a_lossy_codec_serves_only_where_it_is_accepted() {
    let exact = Contract::DEFAULT;
    let accepting = |deviations: &[Deviation]| Contract {
        accept: Deviations::of(deviations),
        ..Contract::DEFAULT
    };
    let all = accepting(Deviation::ALL);
    use Deviation::{LossyFp8, LossyInt4, LossyInt6, LossyInt8};
    for arch in ["gfx942", "gfx950"] {
        let plan = plan_for(arch, &[], group(arch, 4, Topology::XgmiFull, &[Cap::P2p]), all);
        let served = |contract, mib: u64| {
            name(&plan, &call(Op::AllReduce, Dtype::Bf16, contract), mib << 20)
        };
        assert_eq!(served(exact, 16), "quick_reduce/fp16", "{arch}");
        assert_eq!(served(accepting(&[LossyFp8]), 16), "quick_reduce/fp8");
        assert_eq!(served(accepting(&[LossyInt4]), 16), "quick_reduce/int4");
        assert_eq!(served(accepting(&[LossyInt4, LossyInt6]), 16), "quick_reduce/int6");
        assert_eq!(served(all, 16), "quick_reduce/int8", "the most precise that pays");
        assert_eq!(served(accepting(&[LossyInt8]), 8), "quick_reduce/fp16", "int8 pays later");
    }
}

#[test]
fn a_pack_is_for_its_family_and_no_other() {
    let first = |arch: &str| {
        let effective = Sources::shipped(arch).load(&registry()).unwrap();
        effective.policy.rules()[0].id.clone()
    };
    for (arch, prefix) in [
        ("sm80", "sm80-"),
        ("sm86", "sm80-"),
        ("sm89", "sm80-"),
        ("sm90", "sm90-"),
        ("sm100", "sm10"),
        ("sm103", "sm10"),
        ("gfx90a", "gfx90a-"),
        ("gfx942:sramecc+:xnack-", "gfx942-"),
        ("gfx950", "gfx942-"),
        ("sm120", "floor"),
        ("sm75", "floor"),
        ("gfx908", "floor"),
    ] {
        assert!(first(arch).starts_with(prefix), "{arch}: {}", first(arch));
    }
}

#[test]
fn size_invariant_results_add_in_the_order_of_ranks_whatever_the_size() {
    let overlay = [policies().join("deterministic.toml")];
    let mut decisions = 0;
    for (arch, topologies) in PACKS {
        for topology in topologies.iter().copied().filter(|t| *t != Topology::MultiNode) {
            for world in [2, 3, 4, 5, 6, 7, 8, 16] {
                let multicast = matches!(topology, Topology::NvlinkFull | Topology::Mnnvl);
                let caps: &[Cap] =
                    if multicast { &[Cap::P2p, Cap::Multicast] } else { &[Cap::P2p] };
                let group = group(arch, world, topology, caps);
                let plan = plan(arch, &overlay, group);
                assert_eq!(plan.contract().determinism, Determinism::SizeInvariant);
                let usual = self::plan(arch, &[], plan.group().clone());
                for (op, dtype) in [Op::AllReduce, Op::ReduceScatter]
                    .into_iter()
                    .flat_map(|op| [Dtype::F32, Dtype::F16, Dtype::Bf16].map(|d| (op, d)))
                {
                    for mode in [Mode::Graph, Mode::Eager] {
                        let call = CallKind { mode, ..call(op, dtype, plan.contract()) };
                        let usual_call = CallKind { contract: usual.contract(), ..call };
                        let points = [plan.sweep(&call), usual.sweep(&usual_call)].concat();
                        for at in points.iter().map(|band| band.from) {
                            for bytes in [at.saturating_sub(1), at, at + 1, at + 16] {
                                let order = order_of(&plan, plan.decide(&call, bytes));
                                let who = name(&plan, &call, bytes);
                                assert_eq!(
                                    order,
                                    Some(OrderClass::RankOrdered),
                                    "{arch} x{world} {topology} {call:?} {bytes}: {who}"
                                );
                                decisions += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(decisions > 10_000, "{decisions}");
}

#[test]
fn size_invariance_keeps_the_fast_paths() {
    let overlay = [policies().join("deterministic.toml")];
    let group = group("sm90", 8, Topology::NvlinkFull, &[Cap::P2p, Cap::Multicast]);
    let (exact, usual) = (plan("sm90", &overlay, group.clone()), plan("sm90", &[], group));
    let served =
        |plan: &Plan, bytes| name(plan, &call(Op::AllReduce, Dtype::Bf16, plan.contract()), bytes);
    for bytes in [1 << 10, 64 << 10, 128 << 10] {
        assert_eq!(served(&exact, bytes), served(&usual, bytes));
    }
    assert_eq!(served(&usual, 64 << 20), "nvls/two_shot");
    assert_eq!(served(&exact, 64 << 20), "ipc/two_shot_pull");
}

/// What must hold of a call that nobody serves in the same order: a refusal that names the limit.
#[test]
fn beyond_the_room_there_is_a_refusal_and_no_other_order() {
    let overlay = [policies().join("deterministic.toml")];
    let policy = sources("sm90", &overlay).load(&registry()).unwrap().policy;
    let mib = 1 << 20;
    let room = OfferState::Open { capacity: 8 * mib };
    let offers = registry().descriptors().into_iter();
    let offers = offers.map(|descriptor| Offer { descriptor, state: room.clone() }).collect();
    let group = group("sm90", 4, Topology::NvlinkFull, &[Cap::P2p]);
    let contract = Contract::DEFAULT.intersection(policy.contract);
    let plan = Plan::compile(group, contract, &policy, offers);
    let call = call(Op::AllReduce, Dtype::Bf16, contract);
    assert_eq!(name(&plan, &call, 8 * mib), "ipc/two_shot_pull");
    let explained = plan.explain_kind(&call, 8 * mib + 2);
    assert!(explained.chosen.is_none());
    let reasons: Vec<&str> = explained.considered.iter().map(|c| c.reason.as_str()).collect();
    assert!(reasons.contains(&"capacity: wants at most 8388608 B, got 8388610 B"), "{reasons:?}");
    assert!(
        reasons.contains(
            &"determinism: wants a contract of at most rank_consistent, got size_invariant"
        ),
        "{reasons:?}"
    );
}

/// The group of the small all-gathers, isolated: the floor and the overlay alone.
fn gathering(arch: &str, caps: &[Cap], contract: Contract) -> Plan {
    let sources = Sources::isolated(vec![policies().join("small_all_gather.toml")]);
    compiled(&sources, group(arch, 4, Topology::NvlinkFull, caps), contract)
}

const FLUSHING: Contract =
    Contract { accept: Deviations::of(&[Deviation::SignedZeroFlush]), ..Contract::DEFAULT };

#[test]
fn small_all_gathers_go_to_lamport_where_its_zeros_are_accepted() {
    let both = &[Cap::P2p, Cap::Multicast];
    let explained = |contract, bytes| {
        let plan = gathering("sm100", both, contract);
        let call = CallKind { mode: Mode::Graph, ..call(Op::AllGather, Dtype::Bf16, contract) };
        let chosen = plan.explain_kind(&call, bytes).chosen.unwrap();
        (chosen.target, chosen.rule)
    };
    let of = |target: &str, rule: &str| (target.to_owned(), rule.to_owned());
    assert_eq!(explained(FLUSHING, 64 << 10), of("nvls/lamport_all_gather", "small-all-gather"));
    assert_eq!(explained(Contract::DEFAULT, 64 << 10), of("ipc/all_gather", "small-all-gather"));
    assert_eq!(explained(FLUSHING, 65_552), of("nccl", "floor"));
}

#[test]
fn small_all_gathers_in_every_case_that_the_overlay_is_for() {
    let both = &[Cap::P2p, Cap::Multicast];
    let plan = gathering("sm100", both, FLUSHING);
    let served = |plan: &Plan, op, dtype, bytes| name(plan, &call(op, dtype, FLUSHING), bytes);
    assert_eq!(served(&plan, Op::AllGather, Dtype::Bf16, 64 << 10), "nvls/lamport_all_gather");
    assert_eq!(served(&plan, Op::AllGather, Dtype::Bf16, (64 << 10) + 16), "nccl");
    // The engine of the original sends 8 bytes to NCCL, being no multiple of 16; ours takes them.
    assert_eq!(served(&plan, Op::AllGather, Dtype::F32, 8), "nvls/lamport_all_gather");
    assert_eq!(
        served(&plan, Op::AllGather, Dtype::I32, 64),
        "ipc/all_gather",
        "a mark is a number"
    );
    assert_eq!(served(&plan, Op::AllGather, Dtype::Bf16, 0), "nccl");
    for op in [Op::AllReduce, Op::ReduceScatter, Op::Broadcast, Op::AllToAll] {
        assert_eq!(served(&plan, op, Dtype::Bf16, 1024), "nccl", "{op}: untouched");
    }
    let plan = gathering("sm100", &[Cap::P2p], FLUSHING);
    assert_eq!(served(&plan, Op::AllGather, Dtype::Bf16, 1024), "ipc/all_gather");
    let plan = gathering("sm100", &[], FLUSHING);
    assert_eq!(served(&plan, Op::AllGather, Dtype::Bf16, 1024), "nccl");
}

#[test]
fn a_higher_file_takes_the_overlay_away_or_changes_its_chain_alone() {
    let group = group("sm100", 4, Topology::NvlinkFull, &[Cap::P2p, Cap::Multicast]);
    let folder = tempfile::tempdir().unwrap();
    let overlaid = |text: &str| {
        let file = folder.path().join("mine.toml");
        std::fs::write(&file, format!("schema = 1\n[rule.small-all-gather]\n{text}\n")).unwrap();
        let sources = Sources::isolated(vec![policies().join("small_all_gather.toml"), file]);
        let plan = compiled(&sources, group.clone(), FLUSHING);
        let served = |op| name(&plan, &call(op, Dtype::Bf16, FLUSHING), 1024);
        (served(Op::AllGather), served(Op::AllReduce))
    };
    let of = |gather: &str| (gather.to_owned(), "nccl".to_owned());
    assert_eq!(overlaid("enabled = false"), of("nccl"));
    assert_eq!(overlaid("chain = [{ use = 'symm/all_gather' }]"), of("symm/all_gather"));
}

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies")
}

fn registry() -> Registry {
    crossover_backends::registry().unwrap()
}

fn group(arch: &str, world: u32, topology: Topology, caps: &[Cap]) -> GroupProfile {
    let nodes = if matches!(topology, Topology::Mnnvl | Topology::MultiNode) { 2 } else { 1 };
    GroupProfile {
        arch: arch.to_owned(),
        device: String::new(),
        world,
        nodes,
        topology,
        tag: "tp".to_owned(),
        caps: Caps::of(caps),
        caches: Default::default(),
    }
}

fn call(op: Op, dtype: Dtype, contract: Contract) -> CallKind {
    CallKind { op, dtype, reduce_op: ReduceOp::Sum, mode: Mode::Eager, contract }
}

fn every_kind(contract: Contract) -> Vec<CallKind> {
    let mut kinds = Vec::new();
    for &op in Op::ALL {
        for &dtype in Dtype::ALL {
            for &mode in Mode::ALL {
                let reduce_ops = if op.reduces() { ReduceOp::ALL } else { &[ReduceOp::Sum] };
                kinds.extend(reduce_ops.iter().map(|&reduce_op| CallKind {
                    op,
                    dtype,
                    reduce_op,
                    mode,
                    contract,
                }));
            }
        }
    }
    kinds
}

/// What is shipped for an architecture, and overlays.
fn sources(arch: &str, overlays: &[PathBuf]) -> Sources {
    let paths: Vec<String> = overlays.iter().map(|path| path.display().to_string()).collect();
    let stated = (!paths.is_empty()).then(|| Override {
        key: "policy".to_owned(),
        value: paths.join(":"),
        origin: "--policy".to_owned(),
    });
    Sources::of(&Settings::load([], stated.as_slice(), &registry()).unwrap(), arch)
}

fn plan(arch: &str, overlays: &[PathBuf], group: GroupProfile) -> Plan {
    plan_for(arch, overlays, group, Contract::DEFAULT)
}

fn plan_for(arch: &str, overlays: &[PathBuf], group: GroupProfile, engine: Contract) -> Plan {
    compiled(&sources(arch, overlays), group, engine)
}

/// Every backend is there, with room for any size.
fn compiled(sources: &Sources, group: GroupProfile, engine: Contract) -> Plan {
    let policy = sources.load(&registry()).unwrap_or_else(|told| panic!("{told}")).policy;
    let open = OfferState::Open { capacity: u64::MAX };
    let offers = registry().descriptors().into_iter();
    let offers = offers.map(|descriptor| Offer { descriptor, state: open.clone() });
    Plan::compile(group, engine.intersection(policy.contract), &policy, offers.collect())
}

fn name(plan: &Plan, call: &CallKind, bytes: u64) -> String {
    plan.decide(call, bytes).map_or("none".to_owned(), |choice| plan.name_of(choice))
}

fn order_of(plan: &Plan, choice: Option<Choice>) -> Option<OrderClass> {
    match choice? {
        Choice::Copy => None,
        Choice::Serve { offer, algorithm, .. } => {
            let algorithms = plan.offers()[offer as usize].descriptor.algorithms;
            Some(algorithms[algorithm as usize].eligibility.order)
        }
    }
}
