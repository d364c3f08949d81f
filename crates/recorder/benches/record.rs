//! What recording costs a call: the budget is 20 ns.

use std::hint::black_box;
use std::panic::Location;

use criterion::{Criterion, criterion_group, criterion_main};
use crossover_core::call::{CallSig, Dtype, Mode, Op, ReduceOp, Split};
use crossover_core::contract::Contract;
use crossover_core::record::{Entry, Event};
use crossover_recorder::{About, Process, Ring};

fn record(c: &mut Criterion) {
    let about = About {
        job: "bench".to_owned(),
        attempt: 0,
        tag: "tp".to_owned(),
        group: 1,
        rank: 0,
        world: 1,
        members: vec![String::new()],
        nodes: vec![String::new()],
        process: Process::here(),
        device: "host".to_owned(),
        policy: String::new(),
        backends: String::new(),
        version: String::new(),
        targets: vec!["copy".to_owned()],
    };
    let (ring, _) = Ring::make(None, about).expect("memory");
    let site = Location::caller();
    let mut seq = 0;
    c.bench_function("record a call", |b| {
        b.iter(|| {
            seq += 1;
            let call = CallSig {
                op: Op::AllReduce,
                dtype: Dtype::Bf16,
                reduce_op: ReduceOp::Sum,
                count: black_box(seq as usize & 0xFFFF),
                mode: Mode::Eager,
                root: 0,
                split: Split::Even,
                contract: Contract::DEFAULT,
            };
            ring.write(&Entry { event: Event::Call(&call), seq, target: 0, site });
            ring.finish();
        });
    });
    c.bench_function("note a state", |b| {
        b.iter(|| {
            let event = Event::State { step: 7, digest: black_box(99) };
            ring.write(&Entry { event, seq, target: 0, site });
            ring.finish();
        });
    });
}

criterion_group!(benches, record);
criterion_main!(benches);
