//! Any policy, any group, any call.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{CallKind, Dtype, Dtypes, Mode, Modes, Op, Ops, ReduceOp, ReduceOps};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations};
use crossover_core::eligibility::{Clause, Eligibility, Refusal, Worlds};
use crossover_core::facts::{Caps, GroupProfile, Topology};
use crossover_core::plan::{Offer, OfferState};
use crossover_core::policy::{Basis, ByteRange, Candidate, Layer, Match, Origin, Policy, Rule};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const PICKY: Descriptor = Descriptor {
    id: "picky",
    version: "1",
    settings: &[],
    algorithms: &[
        Algorithm {
            name: "by16",
            eligibility: Eligibility { multiple_of: 16, ..Eligibility::EVERYTHING },
            params: &[],
        },
        Algorithm {
            name: "lossy",
            eligibility: Eligibility {
                ops: Ops::of(&[Op::AllReduce]),
                dtypes: Dtypes::of(&[Dtype::Bf16, Dtype::F16]),
                reduce_ops: ReduceOps::of(&[ReduceOp::Sum]),
                deviates: Deviations::of(&[Deviation::LossyInt4]),
                determinism: Determinism::RunToRun,
                ..Eligibility::EVERYTHING
            },
            params: &[],
        },
        Algorithm {
            name: "small",
            eligibility: Eligibility {
                worlds: Worlds::range(2, 4),
                modes: Modes::of(&[Mode::Eager]),
                ..Eligibility::EVERYTHING
            },
            params: &[],
        },
    ],
};

const FLOOR: Descriptor = Descriptor {
    id: "floor",
    version: "1",
    settings: &[],
    algorithms: &[Algorithm { name: "any", eligibility: Eligibility::EVERYTHING, params: &[] }],
};

pub(crate) fn groups() -> impl Strategy<Value = GroupProfile> {
    let arch = select(vec!["sm90", "sm100", "sm103", "host"]);
    let topology = select(Topology::ALL);
    (arch, topology, 1u32..10, 1u32..3).prop_map(|(arch, topology, world, nodes)| GroupProfile {
        arch: arch.to_owned(),
        device: "device".to_owned(),
        world,
        nodes,
        topology,
        tag: "tp".to_owned(),
        caps: Caps::NONE,
        caches: Default::default(),
    })
}

pub(crate) fn kinds() -> impl Strategy<Value = CallKind> {
    let parts = (
        select(Op::ALL),
        select(Dtype::ALL),
        select(ReduceOp::ALL),
        select(Mode::ALL),
        select(Determinism::ALL),
        any::<bool>(),
    );
    parts.prop_map(|(op, dtype, reduce_op, mode, determinism, lossy)| CallKind {
        op,
        dtype,
        reduce_op,
        mode,
        contract: Contract {
            determinism,
            accept: if lossy { Deviations::ALL } else { Deviations::NONE },
        },
    })
}

pub(crate) fn sizes() -> impl Strategy<Value = u64> {
    // Around few values, so that ranges touch, nest and miss one another by one.
    (select(vec![0u64, 16, 1000, 1 << 16, 1 << 20, u64::MAX - 2]), 0u64..3)
        .prop_map(|(near, off)| near.saturating_sub(1) + off)
}

fn candidates() -> impl Strategy<Value = Candidate> {
    let targets = vec![
        ("picky", Some("by16")),
        ("picky", Some("lossy")),
        ("picky", Some("small")),
        ("picky", None),
        ("floor", None),
        ("absent", None),
    ];
    (select(targets), sizes(), option::of(sizes()), any::<bool>()).prop_map(
        |((backend, algorithm), low, high, output)| Candidate {
            backend: backend.to_owned(),
            algorithm: algorithm.map(str::to_owned),
            bytes: ByteRange { low, high },
            basis: if output { Basis::Output } else { Basis::Input },
            optional: true,
            params: Vec::new(),
        },
    )
}

fn rules() -> impl Strategy<Value = Rule> {
    let when = (
        option::of(select(Op::ALL).prop_map(|op| Ops::of(&[op]))),
        option::of(select(vec!["sm90", "sm10x", "host"]).prop_map(|a| vec![a.to_owned()])),
        option::of((1u32..5, 5u32..10).prop_map(|range| vec![range])),
        option::of(select(Mode::ALL).prop_map(|mode| Modes::of(&[mode]))),
        option::of(select(ReduceOp::ALL).prop_map(|op| ReduceOps::of(&[op]))),
    );
    let when = when.prop_map(|(op, arch, world, mode, reduce_op)| Match {
        op,
        arch,
        world,
        mode,
        reduce_op,
        ..Match::default()
    });
    (when, vec(candidates(), 1..4), select(Layer::ALL), -2i32..3, any::<bool>()).prop_map(
        |(when, chain, layer, priority, last)| Rule {
            id: String::new(),
            layer,
            origin: Origin::default(),
            priority,
            last,
            forced: false,
            when,
            chain,
            evidence: None,
        },
    )
}

pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    vec(rules(), 0..6).prop_map(|mut rules| {
        for (at, rule) in rules.iter_mut().enumerate() {
            rule.id = format!("rule-{at}");
        }
        Policy::new(Contract::DEFAULT, rules)
    })
}

pub(crate) fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let state = prop_oneof![
        sizes().prop_map(|capacity| OfferState::Open { capacity }),
        Just(OfferState::Open { capacity: u64::MAX }),
        vec(prop_oneof![sizes().prop_map(Ok), Just(Err(refusal()))], PICKY.algorithms.len())
            .prop_map(OfferState::Mixed),
        Just(OfferState::Unavailable(refusal())),
    ];
    state.prop_map(|state| {
        let open = OfferState::Open { capacity: u64::MAX };
        vec![Offer { descriptor: &FLOOR, state: open }, Offer { descriptor: &PICKY, state }]
    })
}

fn refusal() -> Refusal {
    Refusal {
        clause: Clause::Setup,
        want: "set-up on every rank".to_owned(),
        got: "rank 1 could not".to_owned(),
    }
}
