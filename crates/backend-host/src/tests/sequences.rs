//! What only sequences of calls show: slots reused early, ops mixed, groups mixed up.

use std::time::Duration;

use crossover_core::call::{Dtype, Op, ReduceOp};

use super::data::{WINDOW, call, expected, input_bytes, random, run};
use super::{group, settings};
use crate::collective::room;
use crate::eligibility::TWO_SHOT;

#[test]
fn mixed_ops_under_skew_never_see_another_calls_data() {
    let world = 3;
    group(world, &settings("1KiB"), |rank, mut session| {
        for seq in 1..=150 {
            let op = Op::ALL[seq as usize % 5];
            let count = [3, 0, 300, 1500, 6][seq as usize % 5 * 2 % 5];
            let call = call(op, Dtype::I32, ReduceOp::Sum, count);
            let inputs: Vec<Vec<u8>> = (0..world)
                .map(|r| random(call.dtype, input_bytes(&call, r), seq << 8 | u64::from(r)))
                .collect();
            // Another rank dawdles each time.
            if seq % u64::from(world) == u64::from(rank) {
                std::thread::sleep(Duration::from_micros(seq * 37 % 1500));
            }
            let made = (seq as usize % 2, seq, &call);
            let got = run(&mut session, made, (rank, &inputs), (0, false)).unwrap();
            assert_eq!(got, expected(&call, &inputs, rank), "rank {rank}, call {seq}: {op}");
        }
    });
}

#[test]
fn groups_at_once_keep_to_themselves() {
    std::thread::scope(|scope| {
        for tenant in 0..3u64 {
            scope.spawn(move || {
                group(2, &settings("1KiB"), |rank, mut session| {
                    for seq in 1..=50 {
                        let call = call(Op::AllReduce, Dtype::U64, ReduceOp::Sum, 200);
                        let seed = |r: u64| tenant << 32 | seq << 8 | r;
                        let inputs = [0, 1].map(|r| random(call.dtype, 1600, seed(r)));
                        let made = (1, seq, &call);
                        let got = run(&mut session, made, (rank, &inputs), (1, true)).unwrap();
                        assert_eq!(got, expected(&call, &inputs, rank), "group {tenant}");
                    }
                });
            });
        }
    });
}

#[test]
fn a_middling_call_goes_round_the_ring_in_as_few_steps_as_its_algorithm_has() {
    let mut long = settings("64KiB");
    long.values.insert("host.ring".to_owned(), "1MiB".to_owned());
    for (algorithm, op) in
        [0, 1].into_iter().flat_map(|one| Op::ALL.iter().map(move |op| (one, *op)))
    {
        let call = call(op, Dtype::F32, ReduceOp::Sum, 3 * 1700);
        let inputs: Vec<Vec<u8>> =
            (0..3).map(|r| random(call.dtype, input_bytes(&call, r), 5 + u64::from(r))).collect();
        let steps = if (op, algorithm) == (Op::AllReduce, TWO_SHOT) { 2 } else { 1 };
        let room = room(algorithm, &call, 3);
        group(3, &long, |rank, mut session| {
            let bytes = call.bytes() as usize;
            // Calls whose `ring` takes this one, does not, and does while it goes past the caches.
            for (seq, goes) in [(6, steps * room), (8, 0), (12, 0)]
                .into_iter()
                // And one of several windows, which are as many rooms where a step carries the call's own bytes.
                .chain((op == Op::Broadcast).then(|| (24, bytes.next_multiple_of(WINDOW))))
            {
                let before = session.ring.at();
                let made = (algorithm, seq, &call);
                let got = run(&mut session, made, (rank, &inputs), (0, false)).unwrap();
                assert_eq!(got, expected(&call, &inputs, rank), "{op}");
                let went = session.ring.at() - before;
                assert_eq!(went, goes, "{op}, algorithm {algorithm}, call {seq}");
            }
        });
    }
}

#[test]
fn both_algorithms_and_all_chunks_give_the_same_bits() {
    let inputs: Vec<Vec<u8>> = (0..4).map(|r| random(Dtype::F32, 40_000, 77 + r)).collect();
    let call = call(Op::AllReduce, Dtype::F32, ReduceOp::Avg, 10_000);
    let mut results = Vec::new();
    for chunk in ["1KiB", "1088B", "64KiB"] {
        for algorithm in [0, 1] {
            results.extend(group(4, &settings(chunk), |rank, mut session| {
                let made = (algorithm, 1, &call);
                run(&mut session, made, (rank, &inputs), (3, false)).unwrap()
            }));
        }
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}
