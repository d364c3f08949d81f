//! Many rules over the same sizes, whose algorithms want different multiples.

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism};
use crossover_core::eligibility::Eligibility;
use crossover_core::facts::{Caps, GroupProfile, Topology};
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_core::policy::{Basis, ByteRange, Candidate, Layer, Match, Origin, Policy, Rule};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const fn wants(name: &'static str, multiple_of: u64, max_bytes: u64) -> Algorithm {
    let eligibility = Eligibility { multiple_of, max_bytes, ..Eligibility::EVERYTHING };
    Algorithm { name, eligibility, params: &[] }
}

const MIXED: Descriptor = Descriptor {
    id: "mixed",
    version: "1",
    settings: &[],
    algorithms: &[
        wants("any", 1, u64::MAX),
        wants("by4", 4, u64::MAX),
        wants("by16", 16, u64::MAX),
        wants("by64", 64, u64::MAX),
        wants("upto100", 1, 100),
        wants("by4_upto100", 4, 100),
    ],
};

const CAPACITY: u64 = 150;

/// Name, multiple and most bytes, once more, as they were meant.
const TABLE: [(&str, u64, u64); 6] = [
    ("any", 1, 150),
    ("by4", 4, 150),
    ("by16", 16, 150),
    ("by64", 64, 150),
    ("upto100", 1, 100),
    ("by4_upto100", 4, 100),
];

type Chain = Vec<(usize, u64, Option<u64>)>;

fn chains() -> impl Strategy<Value = Vec<Chain>> {
    // Few bounds, so that many ranges nest, touch and are equal.
    let bound = || select(vec![0u64, 1, 15, 16, 17, 60, 64, 65, 100, 101, 128, 151, 200]);
    let candidate = (1usize..TABLE.len(), bound(), option::weighted(0.8, bound()));
    vec(vec(candidate, 1..4), 1..60)
}

fn rule(at: usize, chain: &Chain) -> Rule {
    let candidate = |(algorithm, low, high): &(usize, u64, Option<u64>)| Candidate {
        backend: "mixed".to_owned(),
        algorithm: Some(TABLE[*algorithm].0.to_owned()),
        bytes: ByteRange { low: *low, high: *high },
        basis: Basis::Input,
        optional: false,
        params: Vec::new(),
    };
    Rule {
        id: at.to_string(),
        layer: Layer::User,
        origin: Origin::default(),
        priority: 0,
        last: false,
        forced: false,
        when: Match::default(),
        chain: chain.iter().map(candidate).collect(),
        evidence: None,
    }
}

/// The rule and algorithm that serve, by going through all.
fn by_hand(chains: &[Chain], bytes: u64) -> Option<(String, String)> {
    let mut all = (0..).zip(chains).flat_map(|(at, chain)| chain.iter().map(move |c| (at, c)));
    let (at, (algorithm, _, _)) = all.find(|(_, (algorithm, low, high))| {
        let (_, multiple, most) = TABLE[*algorithm];
        *low <= bytes
            && high.is_none_or(|h| bytes < h)
            && bytes.is_multiple_of(multiple)
            && bytes <= most
    })?;
    Some((at.to_string(), format!("mixed/{}", TABLE[*algorithm].0)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_size_goes_to_the_first_that_takes_it(mut chains in chains(), floor in any::<bool>()) {
        if floor {
            chains.push(vec![(0, 0, None)]);
        }
        let rules = (0..).zip(&chains).map(|(at, chain)| rule(at, chain)).collect();
        let group = GroupProfile {
            arch: "sm90".to_owned(),
            device: "device".to_owned(),
            world: 8,
            nodes: 1,
            topology: Topology::NvlinkFull,
            tag: "tp".to_owned(),
            caps: Caps::NONE,
            caches: Default::default(),
        };
        let offer = Offer { descriptor: &MIXED, state: OfferState::Open { capacity: CAPACITY } };
        let policy = Policy::new(Contract::DEFAULT, rules);
        let plan = Plan::compile(group, Contract::DEFAULT, &policy, vec![offer]);
        let narrowed = Contract { determinism: Determinism::SizeInvariant, ..Contract::DEFAULT };
        for contract in [Contract::DEFAULT, narrowed] {
            let (op, dtype, reduce_op) = (Op::AllReduce, Dtype::U8, ReduceOp::Sum);
            let call = CallKind { op, dtype, reduce_op, mode: Mode::Eager, contract };
            for bytes in 0..220 {
                let chosen = plan.explain_kind(&call, bytes).chosen.map(|c| (c.rule, c.target));
                prop_assert_eq!(&chosen, &by_hand(&chains, bytes), "{} B", bytes);
                prop_assert_eq!(plan.decide(&call, bytes).is_some(), chosen.is_some());
            }
            // Said of sizes that are multiples of everything: the first range that holds them.
            let sweep = plan.sweep(&call);
            for bytes in (0..220).step_by(64) {
                let at = sweep.partition_point(|band| band.from <= bytes) - 1;
                prop_assert_eq!(&sweep[at].target, &by_hand(&chains, bytes).map(|(_, target)| target));
            }
        }
    }
}
