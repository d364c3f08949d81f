//! `policies/ported` decides as the engines do: compared with their own code, told independently in
//! `crossover_tests::ported`, at every bound and its neighbours, over groups, modes and element types.

use std::path::{Path, PathBuf};

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::facts::{Cap, Caps, GroupProfile, Topology};
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_core::policy::Policy;
use crossover_policy::Sources;
use crossover_tests::ported::vllm::QUICK_REDUCE;
use crossover_tests::ported::{sglang, sizes_around, vllm};

const MODES: [Mode; 2] = [Mode::Graph, Mode::Eager];

#[test]
fn sglang_all_reduces() {
    // The switch adds 16 bytes at a time. For other sizes its column is passed over; SGLang itself
    // sends all sizes that are no multiple of 16 B to NCCL.
    let policy = ported(&["sglang.toml"]);
    let sizes = sizes_around(sglang::constants());
    let mut cases = 0;
    for (arch, capability) in [
        ("sm75", 75),
        ("sm80", 80),
        ("sm89", 89),
        ("sm90", 90),
        ("sm100", 100),
        ("sm103", 103),
        ("sm106", 106),
        ("sm107", 107),
        ("sm110", 110),
        ("sm120", 120),
    ] {
        for world in 2..=17 {
            for multicast in [false, true] {
                let plan = plan(&policy, group(arch, world, Topology::NvlinkFull, multicast));
                for mode in MODES {
                    for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::I32] {
                        for &bytes in &sizes {
                            let switch = multicast && bytes.is_multiple_of(16);
                            let want = match dtype {
                                Dtype::I32 => ("nccl", 0, 0),
                                _ => sglang::all_reduce(capability, world, mode, switch, bytes),
                            };
                            let call = call(Op::AllReduce, dtype, mode);
                            let got = decided(&plan, &call, bytes);
                            let got = (got.0.as_str(), got.1, got.2);
                            assert_eq!(got, want, "{arch} x{world} {multicast} {call:?} {bytes}");
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    // Architectures, numbers of ranks, multicast, modes, element types.
    assert_eq!(cases, 10 * 16 * 2 * 2 * 4 * sizes.len());
    assert!(sizes.len() > 150, "{} sizes", sizes.len());
}

#[test]
fn vllm_all_reduces() {
    let policy = ported(&["vllm.toml"]);
    let sizes = sizes_around(vllm::constants());
    let mut cases = 0;
    for group in vllm_groups() {
        let plan = plan(&policy, profile(group));
        for mode in MODES {
            for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::F64, Dtype::I32] {
                for &bytes in &sizes {
                    let want = aligned(vllm::all_reduce(group, dtype, bytes), bytes);
                    let call = call(Op::AllReduce, dtype, mode);
                    assert_eq!(
                        decided(&plan, &call, bytes).0,
                        want,
                        "{}",
                        told(group, &call, bytes)
                    );
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, vllm_groups().len() * 2 * 5 * sizes.len());
    assert!(sizes.len() > 100, "{} sizes", sizes.len());
}

#[test]
fn vllm_quick_reduces_with_the_codec_that_is_switched_on() {
    let sizes = sizes_around(vllm::constants());
    let mut taken = 0;
    for (codec, minimum) in QUICK_REDUCE {
        let on = format!("schema = 1\n[table.vllm-quick-reduce-{codec}]\nenabled = true\n");
        let folder = tempfile::tempdir().unwrap();
        let overlay = folder.path().join("on.toml");
        std::fs::write(&overlay, on).unwrap();
        let policy = loaded(vec![shipped("ported/vllm.toml"), overlay]);
        for group in vllm_groups() {
            let plan = plan(&policy, profile(group));
            for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32] {
                for &bytes in &sizes {
                    let quick = vllm::quick_reduce(group, dtype, *minimum, bytes)
                        && bytes.is_multiple_of(16);
                    let want = match quick {
                        true => format!("quick_reduce/{codec}"),
                        false => aligned(vllm::all_reduce(group, dtype, bytes), bytes).to_owned(),
                    };
                    let call = call(Op::AllReduce, dtype, Mode::Eager);
                    assert_eq!(
                        decided(&plan, &call, bytes).0,
                        want,
                        "{}",
                        told(group, &call, bytes)
                    );
                    taken += usize::from(quick);
                }
            }
        }
    }
    assert!(taken > 1000, "{taken} calls were quick-reduced");
}

#[test]
fn vllm_gathers() {
    let policy = ported(&["vllm.toml"]);
    let sizes = sizes_around(vllm::constants());
    for group in vllm_groups() {
        let plan = plan(&policy, profile(group));
        for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::I32] {
            for &bytes in &sizes {
                let call = call(Op::AllGather, dtype, Mode::Graph);
                let want = vllm::all_gather(group, dtype, bytes);
                assert_eq!(decided(&plan, &call, bytes).0, want, "{}", told(group, &call, bytes));
                // An engine that keeps its signed zeros has the kernel for groups without multicast.
                let exact = CallKind { contract: Contract::DEFAULT, ..call };
                let want =
                    vllm::all_gather(vllm::Group { multicast: false, ..group }, dtype, bytes);
                assert_eq!(decided(&plan, &exact, bytes).0, want, "{}", told(group, &exact, bytes));
            }
        }
    }
}

#[test]
fn vllm_reduce_scatters() {
    let policy = ported(&["vllm.toml"]);
    let sizes = sizes_around(vllm::constants());
    for group in vllm_groups() {
        let plan = plan(&policy, profile(group));
        for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::F64] {
            for &bytes in &sizes {
                let want = match vllm::reduce_scatter(group, dtype, bytes) {
                    "lamport" if group.topology == Topology::Mnnvl => "symm/reduce_scatter",
                    "lamport" | "one_shot" => "ipc/reduce_scatter",
                    "multimem" => aligned("nvls/reduce_scatter", bytes),
                    other => other,
                };
                let call = call(Op::ReduceScatter, dtype, Mode::Eager);
                assert_eq!(decided(&plan, &call, bytes).0, want, "{}", told(group, &call, bytes));
            }
        }
    }
}

#[test]
fn vllm_routes_no_other_group() {
    let plan = plan(
        &ported(&["vllm.toml"]),
        GroupProfile { tag: "ep".to_owned(), ..group("sm90", 4, Topology::NvlinkFull, true) },
    );
    for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter] {
        for &bytes in &sizes_around(vllm::constants()) {
            assert_eq!(decided(&plan, &call(op, Dtype::Bf16, Mode::Graph), bytes).0, "nccl");
        }
    }
}

#[test]
fn what_an_engine_leaves_to_nccl_goes_nowhere_else() {
    // NCCL cannot meet this contract, and what lies beneath knows who could: the port is the last word.
    let strict = Contract { determinism: Determinism::SizeInvariant, ..Contract::DEFAULT };
    let mib = 1 << 20;
    for (file, multicast, small, beyond) in [
        ("vllm.toml", true, "ipc/one_shot_pull", mib),
        ("vllm.toml", false, "ipc/one_shot_pull", 8 * mib),
        ("sglang.toml", true, "ipc/one_shot_push", 256 * mib),
    ] {
        let files = vec![shipped("beyond.toml"), shipped(&format!("ported/{file}"))];
        let plan = plan(&loaded(files), group("sm90", 8, Topology::NvlinkFull, multicast));
        let call = CallKind { contract: strict, ..call(Op::AllReduce, Dtype::F16, Mode::Graph) };
        assert_eq!(decided(&plan, &call, 1024).0, small);
        assert_eq!(decided(&plan, &call, beyond).0, "none", "{file}, multicast {multicast}");
    }
}

/// The switch adds 16 bytes at a time (vLLM's takes multiples of 4 B, its other kernels of 16 B; ours
/// take any).
fn aligned(target: &'static str, bytes: u64) -> &'static str {
    if target.starts_with("nvls/") && !bytes.is_multiple_of(16) { "nccl" } else { target }
}

fn vllm_groups() -> Vec<vllm::Group> {
    let full = ["sm80", "sm90", "sm100", "sm101", "sm103", "sm107", "sm120"];
    let mut groups = Vec::new();
    for world in (2..=9).chain([16]) {
        let mut add = |arch, topology, multicast| {
            groups.push(vllm::Group { arch, world, topology, multicast });
        };
        for arch in full {
            add(arch, Topology::NvlinkFull, false);
            add(arch, Topology::Pcie, false);
        }
        for arch in &full[1..] {
            add(arch, Topology::NvlinkFull, true);
            add(arch, Topology::Mnnvl, true);
            add(arch, Topology::Mnnvl, false);
        }
        for arch in ["gfx90a", "gfx942", "gfx950"] {
            add(arch, Topology::XgmiFull, false);
            add(arch, Topology::Pcie, false);
        }
    }
    groups
}

fn profile(of: vllm::Group) -> GroupProfile {
    group(of.arch, of.world, of.topology, of.multicast)
}

fn group(arch: &str, world: u32, topology: Topology, multicast: bool) -> GroupProfile {
    let caps: &[Cap] = if multicast { &[Cap::P2p, Cap::Multicast] } else { &[Cap::P2p] };
    GroupProfile {
        arch: arch.to_owned(),
        device: String::new(),
        world,
        nodes: if topology == Topology::Mnnvl { 2 } else { 1 },
        topology,
        tag: "tp".to_owned(),
        caps: Caps::of(caps),
        caches: Default::default(),
    }
}

/// All deviations are accepted, so that what an engine takes is never refused.
const LENIENT: Contract =
    Contract { determinism: Determinism::RankConsistent, accept: Deviations::ALL };

fn call(op: Op, dtype: Dtype, mode: Mode) -> CallKind {
    CallKind { op, dtype, reduce_op: ReduceOp::Sum, mode, contract: LENIENT }
}

fn ported(files: &[&str]) -> Policy {
    loaded(files.iter().map(|file| shipped(&format!("ported/{file}"))).collect())
}

fn loaded(files: Vec<PathBuf>) -> Policy {
    let registry = crossover_backends::registry().unwrap();
    let effective =
        Sources::isolated(files).load(&registry).unwrap_or_else(|told| panic!("{told}"));
    effective.policy
}

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies").join(file)
}

/// Every backend is there, with room for any size.
fn plan(policy: &Policy, group: GroupProfile) -> Plan {
    let registry = crossover_backends::registry().unwrap();
    let open = OfferState::Open { capacity: u64::MAX };
    let offers = registry.descriptors().into_iter();
    let offers = offers.map(|descriptor| Offer { descriptor, state: open.clone() });
    Plan::compile(group, LENIENT.intersection(policy.contract), policy, offers.collect())
}

/// Who serves, and the first two of its params: blocks and threads where it is launched.
fn decided(plan: &Plan, call: &CallKind, bytes: u64) -> (String, u64, u64) {
    let Some(choice) = plan.decide(call, bytes) else { return ("none".to_owned(), 0, 0) };
    let param = |at| plan.params_of(choice).get(at).copied().unwrap_or(0);
    (plan.name_of(choice), param(0), param(1))
}

fn told(group: vllm::Group, call: &CallKind, bytes: u64) -> String {
    let vllm::Group { arch, world, topology, multicast } = group;
    format!("{arch} x{world} {topology}, multicast {multicast}, {call:?}, {bytes} B")
}
