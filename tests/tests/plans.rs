//! Properties of compiled policies: any policy, any group, any call.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{CallKind, Dtype, Dtypes, Mode, Modes, Op, Ops, ReduceOp, ReduceOps};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations};
use crossover_core::eligibility::{Clause, Eligibility, Refusal, Worlds};
use crossover_core::explain::Verdict;
use crossover_core::facts::{Caps, GroupProfile, Topology};
use crossover_core::plan::{Choice, Offer, OfferState, Plan};
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

fn groups() -> impl Strategy<Value = GroupProfile> {
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
        llc_bytes: 0,
    })
}

fn kinds() -> impl Strategy<Value = CallKind> {
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

fn sizes() -> impl Strategy<Value = u64> {
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
            when,
            chain,
            evidence: None,
        },
    )
}

fn policies() -> impl Strategy<Value = Policy> {
    vec(rules(), 0..6).prop_map(|mut rules| {
        for (at, rule) in rules.iter_mut().enumerate() {
            rule.id = format!("rule-{at}");
        }
        Policy::new(Contract::DEFAULT, rules)
    })
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let state = prop_oneof![
        sizes().prop_map(|capacity| OfferState::Open { capacity }),
        Just(OfferState::Open { capacity: u64::MAX }),
        Just(OfferState::Unavailable(Refusal {
            clause: Clause::Setup,
            want: "set-up on every rank".to_owned(),
            got: "rank 1 could not".to_owned(),
        })),
    ];
    state.prop_map(|state| {
        let open = OfferState::Open { capacity: u64::MAX };
        vec![Offer { descriptor: &FLOOR, state: open }, Offer { descriptor: &PICKY, state }]
    })
}

/// The semantics of a policy, told as directly as can be: no bands, no masks.
fn oracle(
    policy: &Policy,
    group: &GroupProfile,
    offers: &[Offer],
    call: &CallKind,
    bytes: u64,
) -> Option<String> {
    if group.world == 1 {
        return Some("copy".to_owned());
    }
    let output = match call.op {
        Op::AllGather => u128::from(bytes) * u128::from(group.world),
        Op::ReduceScatter => u128::from(bytes / u64::from(group.world)),
        _ => u128::from(bytes),
    };
    for rule in policy.rules().iter().filter(|r| r.when.failing(group, call).is_none()) {
        for candidate in &rule.chain {
            let size = match candidate.basis {
                Basis::Input => u128::from(bytes),
                Basis::Output => output,
            };
            let inside = u128::from(candidate.bytes.low) <= size
                && candidate.bytes.high.is_none_or(|high| size < u128::from(high));
            for offer in offers.iter().filter(|o| inside && o.descriptor.id == candidate.backend) {
                for algorithm in offer.descriptor.algorithms {
                    let named = candidate.algorithm.as_deref().is_none_or(|a| a == algorithm.name);
                    let OfferState::Open { capacity } = offer.state else { continue };
                    let e = &algorithm.eligibility;
                    let takes = e.failing(group, call, bytes, capacity).is_none();
                    if named && takes && bytes.is_multiple_of(e.multiple_of) {
                        return Some(format!("{}/{}", offer.descriptor.id, algorithm.name));
                    }
                }
            }
        }
        if rule.last {
            return None;
        }
    }
    None
}

/// Sizes whose output is a whole number of elements for every rank, where the op needs that.
fn whole(op: Op, bytes: u64, world: u32) -> u64 {
    match op {
        Op::ReduceScatter | Op::AllToAll => bytes - bytes % u64::from(world),
        _ => bytes,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn decisions_are_the_oracles(
        policy in policies(), group in groups(), offers in offers(), call in kinds(),
        sizes in vec(sizes(), 8),
    ) {
        // One plan that is compiled for the call's contract, and one that must walk.
        let fast = Plan::compile(group.clone(), call.contract, &policy, offers.clone());
        let slow = Plan::compile(group.clone(), Contract {
            determinism: Determinism::Any, accept: Deviations::of(&[Deviation::LossyFp8]),
        }, &policy, offers.clone());
        for bytes in sizes {
            let bytes = whole(call.op, bytes, group.world);
            for plan in [&fast, &slow] {
                let contract = plan.contract().intersection(call.contract);
                let want = oracle(&policy, &group, &offers, &CallKind { contract, ..call }, bytes);
                prop_assert_eq!(&plan.decide(&call, bytes).map(|c| plan.name_of(c)), &want);
            }
        }
    }

    #[test]
    fn explanations_agree_with_decisions(
        policy in policies(), group in groups(), offers in offers(), call in kinds(), bytes in sizes(),
    ) {
        let plan = Plan::compile(group, call.contract, &policy, offers);
        let explained = plan.explain_kind(&call, bytes);
        let choice = plan.decide(&call, bytes);
        let told = explained.chosen.as_ref().map(|c| c.target.clone());
        prop_assert_eq!(told, choice.map(|c| plan.name_of(c)));
        let chosen = explained.considered.iter().filter(|c| c.verdict == Verdict::Chosen).count();
        let serves = matches!(choice, Some(Choice::Serve { .. }));
        prop_assert_eq!(chosen, usize::from(serves));
        for c in &explained.considered {
            prop_assert_eq!(c.reason.is_empty(), c.verdict == Verdict::Chosen, "{:?}", c);
        }
        // The band is true at both ends, and what follows is something else: said of sizes that
        // meet the same multiples, as far as those lie inside.
        let target = |bytes| plan.decide(&call, bytes).map(|c| plan.name_of(c));
        let (from, to) = explained.holds;
        prop_assert!(from <= bytes && to.is_none_or(|to| bytes <= to));
        let alike = |at: u64| if bytes % 16 == 0 { at.checked_next_multiple_of(16) } else { Some(at | 1) };
        if let Some(first) = alike(from).filter(|first| *first <= bytes) {
            prop_assert_eq!(target(first), target(bytes));
        }
        if let Some(next) = &explained.next {
            prop_assert_eq!(to, Some(next.at - 1));
            prop_assert_ne!(&next.target, &target(bytes));
            let there = alike(next.at).map(|at| (at, plan.explain_kind(&call, at).holds.0));
            if let Some((at, _)) = there.filter(|(_, from)| *from <= next.at) {
                prop_assert_eq!(&target(at), &next.target);
            }
        }
    }

    #[test]
    fn a_policy_with_a_floor_leaves_nothing_unserved(
        policy in policies(), group in groups(), offers in offers(), call in kinds(), bytes in sizes(),
    ) {
        let mut rules = policy.rules().to_vec();
        rules.iter_mut().for_each(|r| r.last = false);
        rules.push(Rule {
            id: "floor".to_owned(),
            layer: Layer::Builtin,
            origin: Origin::default(),
            priority: -100,
            last: false,
            when: Match::default(),
            chain: vec![Candidate {
                backend: "floor".to_owned(),
                algorithm: None,
                bytes: ByteRange::ANY,
                basis: Basis::Input,
                optional: false,
            params: Vec::new(),
            }],
            evidence: None,
        });
        let plan = Plan::compile(group, call.contract, &Policy::new(Contract::DEFAULT, rules), offers);
        prop_assert!(plan.decide(&call, bytes).is_some());
    }

    #[test]
    fn digests_tell_policies_apart_and_ignore_files(policy in policies()) {
        let mut moved = policy.rules().to_vec();
        moved.iter_mut().for_each(|r| r.origin = Origin { file: "elsewhere".to_owned(), line: 7 });
        prop_assert_eq!(Policy::new(policy.contract, moved.clone()).digest(), policy.digest());
        if let Some(rule) = moved.first_mut() {
            rule.priority += 100;
            prop_assert_ne!(Policy::new(policy.contract, moved).digest(), policy.digest());
        }
    }
}
