//! What backend `nccl` offers a group of AMD's devices, whose library is RCCL: no more than that has.
//! (The library itself is met in `crates/nccl-sys/tests/rccl.rs`.)

use crossover_core::backend::Descriptor;
use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::facts::{Cap, Caps, GroupProfile, Topology};

/// Eight of one node, linked by AMD's own links.
fn group() -> GroupProfile {
    GroupProfile {
        arch: "gfx942".to_owned(),
        device: "device".to_owned(),
        world: 8,
        nodes: 1,
        topology: Topology::XgmiFull,
        tag: "tp".to_owned(),
        caps: Caps::of(&[Cap::P2p]),
        caches: Default::default(),
    }
}

fn call(dtype: Dtype, reduce_op: ReduceOp) -> CallKind {
    let contract = Contract { determinism: Determinism::Any, accept: Deviations::NONE };
    CallKind { op: Op::AllReduce, dtype, reduce_op, mode: Mode::Graph, contract }
}

fn nccl() -> &'static Descriptor {
    let registry = crossover_backends::registry().unwrap();
    registry.find("nccl").unwrap()
}

/// Why the algorithm does not take the call; empty if it does.
fn refusal(name: &str, group: &GroupProfile, call: &CallKind) -> String {
    let algorithm = nccl().algorithms.iter().find(|algorithm| algorithm.name == name).unwrap();
    let (eligibility, bytes) = (algorithm.eligibility, 1024);
    let failing = eligibility.failing(group, call, bytes, u64::MAX);
    let words = |clause| eligibility.refusal(clause, group, call, bytes, u64::MAX).to_string();
    failing.map(words).unwrap_or_default()
}

// RCCL 2.27.7 has the functions of windows and no kernels for them, by its change log; later ones have
// kernels for AMD's links that were never run here. Neither is offered, whatever the library exports.
#[test]
fn symmetric_windows_are_refused_on_amds_links() {
    let sum = call(Dtype::Bf16, ReduceOp::Sum);
    let told = refusal("symmetric", &group(), &sum);
    assert_eq!(told, "topology: wants nvlink_full, mnnvl, got xgmi_full");
    for topology in [Topology::Pcie, Topology::MultiNode] {
        let group = GroupProfile { topology, ..group() };
        assert!(refusal("symmetric", &group, &sum).starts_with("topology: "), "{topology}");
    }
}

#[test]
fn the_librarys_own_choice_takes_what_rccl_has() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64, Dtype::I8, Dtype::U64] {
        for op in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Avg] {
            assert_eq!(refusal("", &group(), &call(dtype, op)), "", "{dtype} {op}");
        }
    }
    for op in [ReduceOp::Min, ReduceOp::Max] {
        assert_eq!(refusal("integers", &group(), &call(Dtype::I32, op)), "");
        assert_eq!(refusal("min_max", &group(), &call(Dtype::F16, op)), "");
    }
}

// Their bits mean one thing to its kernels for gfx942 and another to those for gfx950.
#[test]
fn eight_bit_floats_are_not_reduced() {
    for dtype in [Dtype::F8E4M3, Dtype::F8E5M2] {
        for algorithm in nccl().algorithms {
            let told = refusal(algorithm.name, &group(), &call(dtype, ReduceOp::Sum));
            assert!(told.starts_with("dtype: ") || told.starts_with("topology: "), "{told}");
        }
    }
}
