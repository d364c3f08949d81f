//! What each clause of an eligibility lets through, stated clause by clause: for each, a group or call
//! that only it refuses, and the nearest one that it does not.

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::call::{CallKind, Dtype, Dtypes, Mode, Modes, Op, Ops, ReduceOp, ReduceOps};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations};
use crossover_core::eligibility::{Clause, Eligibility, Memory, Nodes, Worlds};
use crossover_core::facts::{Cap, Caps, GroupProfile, HOST_ARCH, Topologies, Topology};
use crossover_core::policy::{Basis, ByteRange, arch_matches};
use crossover_core::registry::Registry;

/// Each clause says something.
const NARROW: Eligibility = Eligibility {
    ops: Ops::of(&[Op::AllReduce, Op::AllGather]),
    dtypes: Dtypes::of(&[Dtype::F32, Dtype::Bf16, Dtype::U8]),
    reduce_dtypes: Dtypes::of(&[Dtype::F32, Dtype::Bf16, Dtype::F64]),
    reduce_ops: ReduceOps::of(&[ReduceOp::Sum, ReduceOp::Max]),
    modes: Modes::of(&[Mode::Eager]),
    worlds: Worlds::range(2, 8),
    nodes: Nodes::One,
    memory: Memory::Device,
    topologies: Topologies::of(&[Topology::NvlinkFull, Topology::Pcie]),
    needs: Caps::of(&[Cap::P2p, Cap::Multicast]),
    max_bytes: 1000,
    determinism: Determinism::RunToRun,
    deviates: Deviations::of(&[Deviation::SignedZeroFlush]),
    ..Eligibility::EVERYTHING
};

/// A group and a call that meet every clause of [`NARROW`].
#[derive(Clone)]
struct Asked {
    group: GroupProfile,
    call: CallKind,
    bytes: u64,
    capacity: u64,
}

fn met() -> Asked {
    let group = GroupProfile {
        arch: "sm90".to_owned(),
        device: "device".to_owned(),
        world: 4,
        nodes: 1,
        topology: Topology::NvlinkFull,
        tag: "tp".to_owned(),
        caps: Caps::of(&[Cap::P2p, Cap::Multicast]),
        caches: Default::default(),
    };
    let accept = Deviations::of(&[Deviation::SignedZeroFlush]);
    let contract = Contract { determinism: Determinism::RunToRun, accept };
    let (op, dtype, reduce_op) = (Op::AllReduce, Dtype::Bf16, ReduceOp::Sum);
    let call = CallKind { op, dtype, reduce_op, mode: Mode::Eager, contract };
    Asked { group, call, bytes: 512, capacity: 2000 }
}

#[track_caller]
fn check(want: Option<Clause>, change: impl Fn(&mut Asked)) {
    let mut asked = met();
    change(&mut asked);
    let Asked { group, call, bytes, capacity } = &asked;
    assert_eq!(NARROW.failing(group, call, *bytes, *capacity), want);
    let of_group = [Clause::Memory, Clause::Topology, Clause::Nodes, Clause::World, Clause::Caps];
    let (group_alone, call_alone) = (NARROW.failing_group(group), NARROW.failing_call(call));
    match want {
        Some(clause) if of_group.contains(&clause) => {
            assert_eq!((group_alone, call_alone), (want, None));
        }
        None | Some(Clause::Capacity) => assert_eq!((group_alone, call_alone), (None, None)),
        _ => assert_eq!((group_alone, call_alone), (None, want)),
    }
}

#[test]
fn each_clause_refuses_what_it_names_and_nothing_nearer() {
    check(None, |_| {});
    check(Some(Clause::Op), |a| a.call.op = Op::ReduceScatter);
    check(None, |a| a.call.op = Op::AllGather);
    check(Some(Clause::Memory), |a| a.group.arch = HOST_ARCH.to_owned());
    check(None, |a| a.group.arch = "gfx942".to_owned());
    check(Some(Clause::Topology), |a| a.group.topology = Topology::NvlinkPartial);
    check(None, |a| a.group.topology = Topology::Pcie);
    check(Some(Clause::Nodes), |a| a.group.nodes = 2);
    check(Some(Clause::World), |a| a.group.world = 9);
    check(None, |a| a.group.world = 8);
    check(Some(Clause::World), |a| a.group.world = 1);
    check(None, |a| a.group.world = 2);
    check(Some(Clause::Caps), |a| a.group.caps = Caps::of(&[Cap::P2p]));
    check(None, |a| a.group.caps = Caps::ALL);
    check(Some(Clause::Mode), |a| a.call.mode = Mode::Graph);
    check(Some(Clause::Dtype), |a| a.call.dtype = Dtype::F16);
    check(None, |a| a.call.dtype = Dtype::F32);
    check(Some(Clause::ReduceOp), |a| a.call.reduce_op = ReduceOp::Min);
    check(None, |a| a.call.reduce_op = ReduceOp::Max);
    check(Some(Clause::Determinism), |a| a.call.contract.determinism = Determinism::SizeInvariant);
    check(None, |a| a.call.contract.determinism = Determinism::Any);
    check(Some(Clause::Deviation), |a| {
        a.call.contract.accept = Deviations::ALL.without(NARROW.deviates);
    });
    check(None, |a| a.call.contract.accept = Deviations::ALL);
    check(Some(Clause::Capacity), |a| a.bytes = 1001);
    check(None, |a| a.bytes = 1000);
    check(Some(Clause::Capacity), |a| (a.bytes, a.capacity) = (401, 400));
    check(None, |a| (a.bytes, a.capacity) = (400, 400));
}

/// A reduction needs its type in both lists; a copy asks the first alone, and no reduce op.
#[test]
fn copies_are_judged_by_less() {
    check(Some(Clause::Dtype), |a| a.call.dtype = Dtype::U8);
    check(None, |a| (a.call.op, a.call.dtype) = (Op::AllGather, Dtype::U8));
    check(Some(Clause::Dtype), |a| a.call.dtype = Dtype::F64);
    check(Some(Clause::Dtype), |a| (a.call.op, a.call.dtype) = (Op::AllGather, Dtype::F64));
    check(None, |a| (a.call.op, a.call.reduce_op) = (Op::AllGather, ReduceOp::Min));
    let mut asked = met();
    asked.call.dtype = Dtype::U8;
    let told = NARROW.refusal(Clause::Dtype, &asked.group, &asked.call, 8, 8).to_string();
    assert_eq!(told, "dtype: wants f32, bf16, got u8");
}

/// The bits of a copy that deviates follow the algorithm: it cannot promise what it does not state.
#[test]
fn a_copy_that_deviates_meets_no_more_determinism_than_it_states() {
    let gather = |determinism| {
        let mut call = met().call;
        (call.op, call.contract.determinism) = (Op::AllGather, determinism);
        call
    };
    let exact = Eligibility { deviates: Deviations::NONE, ..NARROW };
    let strict = gather(Determinism::SizeInvariant);
    assert_eq!(NARROW.failing_call(&strict), Some(Clause::Determinism));
    assert_eq!(exact.failing_call(&strict), None);
    assert_eq!(NARROW.failing_call(&gather(Determinism::RunToRun)), None);
}

#[test]
fn lamport_promises_no_size_invariance() {
    let registry = crossover_backends::registry().expect("well-formed backends");
    let accept = Deviations::of(&[Deviation::SignedZeroFlush]);
    for (backend, name, op) in [
        ("ipc", "lamport", Op::AllReduce),
        ("ipc", "lamport_all_gather", Op::AllGather),
        ("nvls", "lamport_all_gather", Op::AllGather),
    ] {
        let stated = eligibility(&registry, backend, name);
        let failing = |determinism| {
            let contract = Contract { determinism, accept };
            stated.failing_call(&CallKind { op, contract, ..met().call })
        };
        assert_eq!(failing(Determinism::RunToRun), None, "{backend}/{name}");
        let refused = Some(Clause::Determinism);
        assert_eq!(failing(Determinism::SizeInvariant), refused, "{backend}/{name}");
    }
}

#[test]
fn the_library_copies_eight_bit_floats_and_reduces_none() {
    let registry = crossover_backends::registry().expect("well-formed backends");
    for name in ["", "symmetric"] {
        let stated = eligibility(&registry, "nccl", name);
        for dtype in Dtype::ALL.iter().copied() {
            let failing = |op| {
                let contract = Contract { determinism: Determinism::Any, accept: Deviations::NONE };
                stated.failing_call(&CallKind { op, dtype, contract, ..met().call })
            };
            assert_eq!(failing(Op::AllGather), None, "{name} {dtype}");
            let small = matches!(dtype, Dtype::F8E4M3 | Dtype::F8E5M2);
            let has_kernel = matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::Bf16);
            let is_refused = small || (name == "symmetric" && !has_kernel);
            let refused = is_refused.then_some(Clause::Dtype);
            for op in [Op::AllReduce, Op::ReduceScatter] {
                assert_eq!(failing(op), refused, "{name} {op} {dtype}");
            }
        }
    }
}

fn eligibility(registry: &Registry, backend: &str, name: &str) -> Eligibility {
    let descriptor = registry.find(backend).expect("it is declared");
    let algorithm = descriptor.algorithms.iter().find(|a| a.name == name);
    algorithm.expect("it is declared").eligibility
}

#[test]
fn features_after_an_architecture_count_where_a_policy_writes_some() {
    let device = "gfx942:sramecc+:xnack-";
    for (pattern, arch, matches) in [
        ("gfx942", device, true),
        ("gfx94x", device, true),
        (device, device, true),
        (device, "gfx942", false),
        ("gfx942:sramecc+:xnack+", device, false),
        ("gfx94", device, false),
        ("gfx950", device, false),
        ("gfx942", "gfx942", true),
    ] {
        assert_eq!(arch_matches(pattern, arch), matches, "{pattern} {arch}");
    }
}

#[test]
fn ranges_of_output_are_ranges_of_the_inputs_that_make_it() {
    let range = ByteRange { low: 10, high: Some(100) };
    for (basis, op, low, high) in [
        (Basis::Input, Op::AllGather, 10, 100),
        (Basis::Output, Op::AllReduce, 10, 100),
        // Inputs of 3 bytes make an output of 9, of 4 one of 12; of 33 one of 99, of 34 one of 102.
        (Basis::Output, Op::AllGather, 4, 34),
        (Basis::Output, Op::ReduceScatter, 30, 300),
    ] {
        let want = ByteRange { low, high: Some(high) };
        assert_eq!(range.of_input(basis, op, 3), want, "{op}");
    }
    let open = ByteRange { low: u64::MAX, high: None };
    assert_eq!(open.of_input(Basis::Output, Op::ReduceScatter, 3), open);
}

#[test]
fn a_default_that_a_param_cannot_be_is_refused() {
    const fn with(algorithms: &'static [Algorithm]) -> Descriptor {
        Descriptor { id: "tunable", version: "1", settings: &[], algorithms }
    }
    const fn starting(params: &'static [Param]) -> Algorithm {
        Algorithm { name: "only", eligibility: Eligibility::EVERYTHING, params }
    }
    const VALUES: Values = Values::Count { min: 4, max: 64 };
    const LESS: Descriptor =
        with(&[starting(&[Param { name: "blocks", values: VALUES, default: 3 }])]);
    const LEAST: Descriptor =
        with(&[starting(&[Param { name: "blocks", values: VALUES, default: 4 }])]);
    const MOST: Descriptor =
        with(&[starting(&[Param { name: "blocks", values: VALUES, default: 64 }])]);
    const MORE: Descriptor =
        with(&[starting(&[Param { name: "blocks", values: VALUES, default: 65 }])]);
    let accepted = |descriptor| Registry::empty().declaring(descriptor).is_ok();
    assert_eq!([&LESS, &LEAST, &MOST, &MORE].map(accepted), [false, true, true, false]);
}
