//! Every op, dtype and algorithm on threads as ranks, around the borders of chunks.

use crossover_core::call::{CallSig, Dtype, Op, ReduceOp, Split};

use super::data::{call, expected, input_bytes, random, run};
use super::{group, settings};

#[test]
fn every_op_and_dtype_around_the_borders_of_chunks() {
    for world in [2, 3] {
        let mut calls = Vec::new();
        for (at, &dtype) in Dtype::ALL.iter().enumerate() {
            for &op in Op::ALL {
                let chunk = 1024 / dtype.size();
                let counts = [0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk + 5];
                for (i, count) in counts.into_iter().enumerate() {
                    let count = count.next_multiple_of(world as usize);
                    let reduce_op = ReduceOp::ALL[(at + i) % 5];
                    calls.push(CallSig {
                        root: if op == Op::Broadcast { i as u32 % world } else { 0 },
                        ..call(op, dtype, reduce_op, count)
                    });
                }
            }
        }
        check(world, &calls);
    }
}

#[test]
fn sixteen_ranks() {
    let of = |op: &Op| call(*op, Dtype::Bf16, ReduceOp::Sum, 2064);
    check(16, &Op::ALL.iter().map(of).collect::<Vec<_>>());
}

#[test]
fn counts_per_rank_with_zeros_among_them() {
    let all: [&[usize]; 4] = [&[0, 700, 1], &[5, 0, 0], &[0, 0, 0], &[300, 301, 1200]];
    let mut calls = Vec::new();
    for counts in all {
        let split = Split::PerRank(counts);
        let (longest, total) = (*counts.iter().max().unwrap(), counts.iter().sum());
        let gather = call(Op::AllGather, Dtype::F32, ReduceOp::Sum, longest);
        let scatter = call(Op::ReduceScatter, Dtype::F16, ReduceOp::Sum, total);
        calls.extend([CallSig { split, ..gather }, CallSig { split, ..scatter }]);
    }
    check(3, &calls);
}

/// Runs the calls one after the other on one group, by every algorithm, in place and not, at
/// changing alignments and with new data each time.
fn check(world: u32, calls: &[CallSig<'_>]) {
    let mut settings = settings("1KiB");
    settings.values.insert("host.threads".to_owned(), "2".to_owned());
    group(world, &settings, |rank, mut session| {
        let mut seq = 0;
        for call in calls {
            for (algorithm, in_place) in [(0, false), (0, true), (1, false), (1, true)] {
                seq += 1;
                let inputs: Vec<Vec<u8>> = (0..world)
                    .map(|r| random(call.dtype, input_bytes(call, r), seq << 8 | u64::from(r)))
                    .collect();
                let misaligned = (seq + u64::from(rank)) as usize % 8;
                let got = run(
                    &mut session,
                    (algorithm, seq, call),
                    (rank, &inputs),
                    (misaligned, in_place),
                )
                .unwrap();
                let right = got == expected(call, &inputs, rank);
                assert!(right, "rank {rank}, algorithm {algorithm}, in place {in_place}: {call:?}");
            }
        }
    });
}
