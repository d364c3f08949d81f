//! What a decision costs on the hot path, and what compiling a plan costs:
//! `cargo bench -p crossover-core`. To reach: 30 ns a decision, from 1 rule to 10,000 and from 2
//! ranks to 1,024; compiling that grows no worse than the rules.

#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{CallSig, Dtype, Dtypes, Mode, Modes, Op, Ops, ReduceOp, Split};
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

/// So many that a processor learns none of their decisions by heart.
const CALLS: usize = 16_384;

const RULES: [u64; 5] = [1, 10, 100, 1_000, 10_000];

/// How the rules of a policy lie.
#[derive(Clone, Copy)]
enum Shape {
    /// Every rule is for every call, and has sizes of its own: as many bands as can be, of one kind.
    Stacked,
    /// Every rule is for one op, dtype and mode, in turn.
    Spread,
}

impl Shape {
    const ALL: [(&str, Shape); 2] = [("stacked", Shape::Stacked), ("spread", Shape::Spread)];

    fn when(self, at: u64) -> Match {
        match self {
            Shape::Stacked => Match::default(),
            Shape::Spread => Match {
                op: Some(Ops::of(&[turn(Op::ALL, at)])),
                dtype: Some(Dtypes::of(&[turn(Dtype::ALL, at / 5)])),
                mode: Some(Modes::of(&[turn(Mode::ALL, at / 60)])),
                ..Match::default()
            },
        }
    }
}

fn turn<T: Copy>(all: &[T], at: u64) -> T {
    all[(at % all.len() as u64) as usize]
}

/// Rule `at` serves sizes from `4096 * at` on: whole packs of most by one algorithm, the rest by
/// another.
fn policy(rules: u64, shape: Shape) -> Policy {
    let candidate = |algorithm: &str, low: u64, high: u64| Candidate {
        backend: "ipc".to_owned(),
        algorithm: Some(algorithm.to_owned()),
        bytes: ByteRange { low, high: Some(high) },
        basis: Basis::Input,
        optional: false,
        params: Vec::new(),
    };
    let rule = |at: u64| Rule {
        id: format!("rule-{at}"),
        layer: Layer::Pack,
        origin: Origin::default(),
        priority: 0,
        last: false,
        forced: false,
        when: shape.when(at),
        chain: vec![
            candidate("push", at * 4096, at * 4096 + 3000),
            candidate("pull", at * 4096, at * 4096 + 4096),
        ],
        evidence: None,
    };
    Policy::new(Contract::DEFAULT, (0..rules).map(rule).collect())
}

fn compile(policy: &Policy, world: u32) -> Plan {
    let group = GroupProfile {
        arch: "sm90".to_owned(),
        device: "a device".to_owned(),
        world,
        nodes: 1,
        topology: Topology::NvlinkFull,
        tag: "tp".to_owned(),
        caps: Caps::ALL,
        caches: Default::default(),
    };
    let offer = Offer { descriptor: &BACKEND, state: OfferState::Open { capacity: u64::MAX } };
    Plan::compile(group, Contract::DEFAULT, policy, vec![offer])
}

/// What differs between calls, as small as can be: what the calls take of the caches is not the
/// decision's.
#[derive(Clone, Copy)]
struct Drawn {
    count: u32,
    op: Op,
    dtype: Dtype,
    reduce_op: ReduceOp,
    mode: Mode,
}

impl Drawn {
    fn call(self, contract: Contract) -> CallSig<'static> {
        CallSig {
            op: self.op,
            dtype: self.dtype,
            reduce_op: self.reduce_op,
            count: self.count as usize,
            mode: self.mode,
            root: 0,
            split: Split::Even,
            contract,
        }
    }
}

/// Every op, dtype and mode, and every size below `end`, by chance.
fn draw(end: u64) -> Vec<Drawn> {
    let mut state = 1u64;
    let mut below = move |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % end
    };
    let drawn = |_| {
        let dtype = turn(Dtype::ALL, below(12));
        Drawn {
            count: (below(end) / dtype.size() as u64) as u32,
            op: turn(Op::ALL, below(5)),
            dtype,
            reduce_op: turn(ReduceOp::ALL, below(5)),
            mode: turn(Mode::ALL, below(2)),
        }
    };
    (0..CALLS).map(drawn).collect()
}

fn decide(c: &mut Criterion, group: &str, name: &str, plan: &Plan, end: u64, contract: Contract) {
    let mut group = c.benchmark_group(group);
    // Samples so short that most of them end before the system takes the processor away: then the
    // median is the decision's, also where others use the machine.
    group.warm_up_time(Duration::from_millis(50)).measurement_time(Duration::from_millis(30));
    let calls = draw(end);
    let mut at = 0;
    group.bench_function(name, |b| {
        b.iter(|| {
            at = (at + 1) % CALLS;
            black_box(plan.select(&black_box(calls[at]).call(contract)))
        });
    });
    group.finish();
}

fn decisions(c: &mut Criterion) {
    let contract = Contract::DEFAULT;
    for (name, shape) in Shape::ALL {
        for rules in RULES {
            let plan = compile(&policy(rules, shape), 8);
            let name = format!("{name}/{rules}");
            decide(c, "decide, by rules", &name, &plan, rules * 4096, contract);
        }
    }
    for world in [2, 8, 64, 1024] {
        let plan = compile(&policy(100, Shape::Stacked), world);
        decide(c, "decide, by ranks", &world.to_string(), &plan, 100 * 4096, contract);
    }
    let strict = Contract { determinism: Determinism::SizeInvariant, ..contract };
    let plan = compile(&policy(10, Shape::Stacked), 8);
    decide(c, "decide, contract narrowed", "10", &plan, 10 * 4096, strict);
}

fn compiling(c: &mut Criterion) {
    let mut group = c.benchmark_group("compile, by rules");
    group.sample_size(10);
    for (name, shape) in Shape::ALL {
        for rules in &RULES[1..] {
            let policy = policy(*rules, shape);
            group.throughput(Throughput::Elements(*rules));
            group.bench_function(BenchmarkId::new(name, rules), |b| {
                b.iter(|| compile(black_box(&policy), 8));
            });
        }
    }
    group.finish();
}

fn explaining(c: &mut Criterion) {
    let mut group = c.benchmark_group("explain, by rules");
    group.sample_size(10);
    for rules in RULES {
        let plan = compile(&policy(rules, Shape::Stacked), 8);
        let calls = draw(rules * 4096);
        let mut at = 0;
        group.bench_function(rules.to_string(), |b| {
            b.iter(|| {
                at = (at + 1) % CALLS;
                black_box(plan.explain(&black_box(calls[at]).call(Contract::DEFAULT)))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decisions, compiling, explaining);
criterion_main!(benches);
