//! Every call has the right result, bit for bit, in every circumstance.

use std::sync::Barrier;
use std::time::Duration;

use crossover_core::call::{Dtype, Op, ReduceOp, Split};
use crossover_device::stream::Stream;

use super::{Case, Prepared, Stand, Target};
use crate::data::{Rng, Values};

/// A type that the algorithm states for an op, by number.
fn some_dtype(target: &Target, op: Op, nth: u64) -> Dtype {
    let all = target.dtypes(op);
    all[nth as usize % all.len()]
}

/// Whatever the algorithm states, with a count that is no multiple of anything.
pub fn every_dtype_and_reduce_op(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            let mut seed = 0;
            for op in target.ops() {
                for dtype in target.dtypes(op) {
                    let reduce_ops = if op.reduces() { ReduceOp::ALL } else { &[ReduceOp::Sum] };
                    for &reduce_op in reduce_ops {
                        seed += 1;
                        let mut case = Case::new(target, op, dtype, 257, seed);
                        case.call.reduce_op = reduce_op;
                        case.call.root = seed as u32;
                        case.check(rank);
                    }
                }
            }
        });
    }
}

/// From one element to several pieces, around every multiple at which anything changes.
pub fn sizes_around_every_room(stand: &Stand, target: &Target) {
    let (room, stage) = stand.rooms();
    for world in stand.worlds(&[2]) {
        stand.run(world, &stand.plan(target), |rank| {
            for op in target.ops() {
                for dtype in
                    target.dtypes(op).into_iter().filter(|d| d.size() <= 4).take(stand.scale(2, 3))
                {
                    let around = |bytes: usize| {
                        let count = bytes / dtype.size();
                        [count - 1, count, count + 1]
                    };
                    let small = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 100];
                    let rooms = [room, stage / world as usize, stage, 2 * stage + 64];
                    let large = rooms.into_iter().flat_map(around);
                    let all: Vec<usize> = small.into_iter().chain(large).collect();
                    for (seed, count) in all.into_iter().enumerate() {
                        Case::new(target, op, dtype, count, seed as u64).check(rank);
                    }
                }
            }
        });
    }
}

/// 2 to 8, and 16; from each root.
pub fn every_world(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[2, 3, 4, 5, 6, 7, 8, 16]) {
        assert!(target.takes_world(world));
        stand.run(world, &stand.plan(target), |rank| {
            let counts = stand.scale([1, 37, 700], [1, 1000, 70_001]);
            for op in target.ops() {
                for (seed, count) in counts.into_iter().enumerate() {
                    let dtype = some_dtype(target, op, seed as u64);
                    Case::new(target, op, dtype, count, seed as u64).check(rank);
                }
                let roots = if op == Op::Broadcast { world } else { 0 };
                for root in 0..roots {
                    let mut case = Case::new(target, op, Dtype::F32, 65, u64::from(root));
                    case.call.root = root;
                    case.check(rank);
                }
            }
        });
    }
}

/// Every offset from a 16-byte boundary, another on each rank.
pub fn misaligned_tensors(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            for offset in 0..16 {
                for op in target.ops() {
                    let dtype = some_dtype(target, op, offset as u64);
                    let mut case = Case::new(target, op, dtype, 203, offset as u64);
                    case.offset = offset + rank.number();
                    case.check(rank);
                }
            }
        });
    }
}

/// One buffer for input and output, from a few bytes to several pieces.
pub fn in_place(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[4]) {
        stand.run(world, &stand.plan(target), |rank| {
            let counts = stand.scale([1, 31, 1024, 5003], [1, 31, 4096, 300_001]);
            for (seed, count) in counts.into_iter().enumerate() {
                for op in target.ops() {
                    let dtype = some_dtype(target, op, seed as u64);
                    let mut case = Case::new(target, op, dtype, count, seed as u64);
                    case.in_place = true;
                    case.call.root = seed as u32;
                    case.check(rank);
                }
            }
        });
    }
}

/// Uneven counts, zeros among them; and equal ones.
pub fn counts_per_rank(stand: &Stand, target: &Target) {
    let large = stand.scale(3_000, 70_000);
    let uneven: [&[usize]; 7] = [
        &[3, 0, 5],
        &[0, 0, 7],
        &[1, 0, 0],
        &[large, 1, 2 * large],
        &[0, 0, 0],
        &[1, 1, 1],
        &[64, 64, 64],
    ];
    let ops = target.ops().into_iter().filter(|op| matches!(op, Op::AllGather | Op::ReduceScatter));
    for op in ops {
        for world in stand.worlds(&[3]).into_iter().filter(|world| *world == 3) {
            stand.run(world, &stand.plan(target), |rank| {
                for (seed, counts) in uneven.into_iter().enumerate() {
                    for in_place in [false, true] {
                        let count = match op {
                            Op::AllGather => counts.iter().copied().max().expect("three of them"),
                            _ => counts.iter().sum(),
                        };
                        let dtype = some_dtype(target, op, seed as u64);
                        let mut case = Case::new(target, op, dtype, count, seed as u64);
                        case.call.split = Split::PerRank(counts);
                        case.in_place = in_place;
                        case.check(rank);
                    }
                }
            });
        }
    }
}

/// NaN payloads, infinities, subnormals and -0.0: copies keep them, sums of them are the
/// reference's; and numbers whose sum depends on the order of addition.
pub fn every_bit(stand: &Stand, target: &Target) {
    for world in stand.worlds(stand.scale(&[3, 8][..], &[2, 3, 5, 8])) {
        stand.run(world, &stand.plan(target), |rank| {
            let mut seed = 0;
            for op in target.ops() {
                for dtype in target.dtypes(op) {
                    let sums = [ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Max, ReduceOp::Prod];
                    let reduce_ops = if op.reduces() { &sums[..] } else { &sums[..1] };
                    for &reduce_op in reduce_ops {
                        for values in [Values::Bits, Values::Rough] {
                            seed += 1;
                            let count = stand.scale(211, 20_011);
                            let mut case = Case::new(target, op, dtype, count, seed);
                            case.values = if op.reduces() { values } else { Values::Bits };
                            case.call.reduce_op = reduce_op;
                            case.check(rank);
                        }
                    }
                }
            }
        });
    }
}

/// Many calls in a stream before the host looks at any.
pub fn calls_back_to_back(stand: &Stand, target: &Target) {
    let calls = stand.scale(24, 200);
    for world in stand.worlds(stand.scale(&[3][..], &[2, 4])) {
        stand.run(world, &stand.plan(target), |rank| {
            let ops = target.ops();
            let mut shape = Rng::new(7, 0);
            let prepared: Vec<Prepared<'_>> = (0..calls)
                .map(|seed| {
                    let op = ops[seed as usize % ops.len()];
                    let count = 1 + shape.below(stand.scale(2_000, 40_000)) as usize;
                    let mut case = Case::new(target, op, some_dtype(target, op, seed), count, seed);
                    case.call.root = seed as u32;
                    case.offset = seed as usize % 3 * rank.number();
                    case.prepare(rank, &rank.room)
                })
                .collect();
            rank.meet("loaded");
            if rank.number() == 1 {
                std::thread::sleep(Duration::from_millis(2));
            }
            for call in &prepared {
                call.enqueue(rank).expect("the call can be made");
                call.spoil(rank);
            }
            rank.finish().expect("all succeed");
            prepared.iter().for_each(|call| call.check(rank));
        });
    }
}

/// Hosts that come late, and a rank whose kernels do: it must not read what its peers have put
/// where their inputs were.
pub fn lagging_ranks(stand: &Stand, target: &Target) {
    let calls = stand.scale(40, 300);
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            let ops = target.ops();
            let mut delay = Rng::new(2, rank.comm().rank());
            for seed in 0..calls {
                if delay.below(3) == 0 {
                    std::thread::sleep(Duration::from_micros(delay.below(400)));
                }
                let slow = seed / 10 % rank.world() as u64 == rank.number() as u64;
                rank.oversleep(Duration::from_micros(if slow { 200 } else { 0 }));
                let op = ops[seed as usize % ops.len()];
                let count = 1 + (seed as usize * 37) % 1500;
                Case::new(target, op, some_dtype(target, op, seed), count, seed).check(rank);
            }
        });
    }
}

/// Three groups at once, each of two ranks, on threads of their own.
pub fn several_groups_at_once(stand: &Stand, target: &Target) {
    // Among processes there is one group at a time.
    if !stand.worlds(&[]).is_empty() {
        return;
    }
    let plan = stand.plan(target);
    // No group gives memory back, which may wait for the whole device, while another one calls.
    let all_ranks = Barrier::new(3 * 2);
    std::thread::scope(|scope| {
        for group in 0..3u64 {
            let (plan, all_ranks) = (&plan, &all_ranks);
            scope.spawn(move || {
                stand.run(2, plan, |rank| {
                    all_ranks.wait();
                    for seed in 0..20 {
                        for op in target.ops() {
                            let seed = group << 32 | seed;
                            Case::new(target, op, Dtype::F32, 99, seed).check(rank);
                        }
                    }
                    all_ranks.wait();
                });
            });
        }
    });
}

/// Calls of one group on two streams by turns, one right behind the other: they keep their order.
pub fn two_streams_by_turns(stand: &Stand, target: &Target) {
    let calls = stand.scale(12, 100);
    for world in stand.worlds(&[2]) {
        stand.run(world, &stand.plan(target), |rank| {
            let ops = target.ops();
            let prepared: Vec<Prepared<'_>> = (0..calls)
                .map(|seed| {
                    let op = ops[seed as usize % ops.len()];
                    let count = 100 + seed as usize * 37;
                    Case::new(target, op, some_dtype(target, op, seed), count, seed)
                        .prepare(rank, &rank.room)
                })
                .collect();
            let mut other = Stream::new(&rank.device).expect("a stream");
            rank.meet("loaded");
            for call in &prepared {
                call.enqueue(rank).expect("the call can be made");
                std::mem::swap(&mut rank.stream, &mut other);
            }
            other.synchronize().expect("kernels end by themselves");
            rank.finish().expect("all succeed");
            prepared.iter().for_each(|call| call.check(rank));
            rank.comm().leave_stream(other.raw()).expect("it lives");
        });
    }
}

/// A stream whose last calls are not done is destroyed: calls behind it, in another stream, come
/// after them, and the group can be closed at once.
pub fn streams_that_go(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[2]) {
        stand.run(world, &stand.plan(target), |rank| {
            let ops = target.ops();
            for seed in 0..stand.scale(4, 20) {
                let call = |nth: u64| {
                    let op = ops[nth as usize % ops.len()];
                    let dtype = some_dtype(target, op, nth);
                    Case::new(target, op, dtype, 700, 3 * seed + nth).prepare(rank, &rank.room)
                };
                let calls: Vec<_> = (0..3).map(call).collect();
                let mut other = Stream::new(&rank.device).expect("a stream");
                rank.meet("loaded");
                calls[0].enqueue(rank).expect("the call can be made");
                std::mem::swap(&mut rank.stream, &mut other);
                calls[1].enqueue(rank).expect("the call can be made");
                std::mem::swap(&mut rank.stream, &mut other);
                rank.comm().leave_stream(other.raw()).expect("it lives");
                drop(other);
                if seed % 2 == 0 {
                    calls[2].enqueue(rank).expect("the call can be made");
                    rank.finish().expect("all succeed");
                    calls.iter().for_each(|call| call.check(rank));
                }
                // Or the next round's first call comes behind it; the last has the end of the group.
            }
        });
    }
}

/// Nothing to move is still a call.
pub fn empty_calls_advance_together(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            for seed in 0..10 {
                for op in target.ops() {
                    Case::new(target, op, Dtype::F32, 0, seed).check(rank);
                    Case::new(target, op, Dtype::F32, 5, seed).check(rank);
                }
            }
        });
    }
}
