//! What a decision costs on the hot path: `cargo bench -p crossover-core`. To reach: 30 ns.

#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::{Contract, Determinism};
use crossover_core::eligibility::Eligibility;
use crossover_core::facts::{Caps, GroupProfile, Topology};
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_core::policy::{Basis, ByteRange, Candidate, Layer, Match, Origin, Policy, Rule};

const BACKEND: Descriptor = Descriptor {
    id: "ipc",
    version: "1",
    settings: &[],
    algorithms: &[
        Algorithm {
            name: "push",
            eligibility: Eligibility { multiple_of: 16, ..Eligibility::EVERYTHING },
            params: &[],
        },
        Algorithm { name: "pull", eligibility: Eligibility::EVERYTHING, params: &[] },
    ],
};

/// Eight rules of four bands each, as a shipped pack has.
fn plan() -> Plan {
    let candidate = |algorithm: &str, low: u64, high: u64| Candidate {
        backend: "ipc".to_owned(),
        algorithm: Some(algorithm.to_owned()),
        bytes: ByteRange { low, high: Some(high) },
        basis: Basis::Input,
        optional: false,
        params: Vec::new(),
    };
    let rules = (0..8u64)
        .map(|at| Rule {
            id: format!("rule-{at}"),
            layer: Layer::Pack,
            origin: Origin::default(),
            priority: 0,
            last: false,
            when: Match::default(),
            chain: vec![
                candidate("push", at * 4096, at * 4096 + 1024),
                candidate("pull", at * 4096 + 1024, at * 4096 + 2048),
                candidate("push", at * 4096 + 2048, at * 4096 + 3000),
                candidate("pull", at * 4096 + 3000, at * 4096 + 4096),
            ],
            evidence: None,
        })
        .collect();
    let group = GroupProfile {
        arch: "sm90".to_owned(),
        device: "a device".to_owned(),
        world: 8,
        nodes: 1,
        topology: Topology::NvlinkFull,
        tag: "tp".to_owned(),
        caps: Caps::ALL,
        llc_bytes: 0,
    };
    let offer = Offer { descriptor: &BACKEND, state: OfferState::Open { capacity: u64::MAX } };
    Plan::compile(group, Contract::DEFAULT, &Policy::new(Contract::DEFAULT, rules), vec![offer])
}

fn decide(c: &mut Criterion) {
    let plan = plan();
    let call = |count| CallSig {
        op: Op::AllReduce,
        dtype: Dtype::Bf16,
        reduce_op: ReduceOp::Sum,
        count,
        mode: Mode::Graph,
        root: 0,
        split: Split::Even,
        contract: Contract::DEFAULT,
    };
    // A new size on every call, so that no branch is learnt by heart.
    let mut count = 0;
    c.bench_function("decide/32 bands", |b| {
        b.iter(|| {
            count = (count + 7919) % 16_000;
            black_box(plan.select(&call(black_box(count))))
        });
    });
    let strict = Contract { determinism: Determinism::SizeInvariant, ..Contract::DEFAULT };
    c.bench_function("decide/another contract", |b| {
        b.iter(|| {
            count = (count + 7919) % 16_000;
            black_box(plan.select(&CallSig { contract: strict, ..call(black_box(count)) }))
        });
    });
}

criterion_group!(benches, decide);
criterion_main!(benches);
