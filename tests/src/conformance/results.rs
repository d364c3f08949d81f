//! Every call has the right result, bit for bit, in every circumstance.

use std::time::Duration;

use crossover_core::call::{CallSig, Dtype, Op, ReduceOp, Split};
use crossover_core::communicator::CallError;

use super::Case;
use crate::data::{Rng, Values};
use crate::groups::{Plan, run};

/// All of them, with a count that is no multiple of anything.
pub fn every_op_dtype_and_reduce_op(target: &str) {
    run(3, &Plan::forcing(target), |comm| {
        let mut seed = 0;
        for &op in Op::ALL {
            for &dtype in Dtype::ALL {
                let reduce_ops = if op.reduces() { ReduceOp::ALL } else { &[ReduceOp::Sum] };
                for &reduce_op in reduce_ops {
                    seed += 1;
                    let mut case = Case::new(op, dtype, 257, seed);
                    case.call.reduce_op = reduce_op;
                    case.call.root = seed as u32;
                    case.check(comm);
                }
            }
        }
    });
}

/// Counts around vector widths, cache lines, pages and the chunks of the backend.
pub fn sizes_around_every_edge(target: &str) {
    let around = |n: usize| [n - 1, n, n + 1];
    let small = (0..40).chain([16, 64, 256, 1024, 4096].into_iter().flat_map(around));
    let large = [1 << 14, 1 << 16, 1 << 17, 3 << 16, 1 << 18].into_iter().flat_map(around);
    let counts: Vec<usize> = small.chain(large).collect();
    run(2, &Plan::forcing(target), |comm| {
        for (seed, &count) in counts.iter().enumerate() {
            for &op in Op::ALL {
                Case::new(op, Dtype::F32, count, seed as u64).check(comm);
            }
            Case::new(Op::AllReduce, Dtype::Bf16, count, seed as u64).check(comm);
            Case::new(Op::AllReduce, Dtype::F64, count, seed as u64).check(comm);
        }
    });
}

/// 1 to 9, and 16.
pub fn every_world(target: &str) {
    for world in (1..=9).chain([16]) {
        run(world, &Plan::forcing(target), |comm| {
            for (seed, count) in [1, 5, 16, 1000, 70_001].into_iter().enumerate() {
                for &op in Op::ALL {
                    let mut case = Case::new(op, Dtype::Bf16, count, seed as u64);
                    case.call.root = world - 1;
                    case.check(comm);
                }
            }
        });
    }
}

/// Every offset from a 16-byte boundary, another on each rank.
pub fn misaligned_buffers(target: &str) {
    run(3, &Plan::forcing(target), |comm| {
        for offset in 0..16 {
            for &op in Op::ALL {
                for dtype in [Dtype::F32, Dtype::Bf16, Dtype::I64] {
                    let mut case = Case::new(op, dtype, 1003, offset as u64);
                    case.offset = offset + comm.rank() as usize;
                    case.check(comm);
                }
            }
        }
    });
}

/// One buffer for input and output, from a few bytes to several chunks.
pub fn in_place(target: &str) {
    run(4, &Plan::forcing(target), |comm| {
        for (seed, count) in [1, 31, 4096, 300_001].into_iter().enumerate() {
            for &op in Op::ALL {
                let mut case = Case::new(op, Dtype::I32, count, seed as u64);
                case.in_place = true;
                case.check(comm);
            }
        }
    });
}

/// Uneven counts, zeros among them; and even counts, which must give what the even call gives.
pub fn counts_per_rank(target: &str) {
    let plan = Plan::forcing(target);
    let uneven: [&[usize]; 6] =
        [&[3, 0, 5], &[0, 0, 7], &[70_000, 1, 140_000], &[0, 0, 0], &[1, 1, 1], &[64, 64, 64]];
    run(3, &plan, |comm| {
        for (seed, counts) in uneven.into_iter().enumerate() {
            for dtype in [Dtype::F32, Dtype::U8] {
                for in_place in [false, true] {
                    let largest = counts.iter().copied().max().expect("three of them");
                    let mut gather = Case::new(Op::AllGather, dtype, largest, seed as u64);
                    gather.call.split = Split::PerRank(counts);
                    gather.in_place = in_place;
                    gather.check(comm);
                    let total = counts.iter().sum();
                    let mut scatter = Case::new(Op::ReduceScatter, dtype, total, seed as u64);
                    scatter.call.split = Split::PerRank(counts);
                    scatter.in_place = in_place;
                    scatter.check(comm);
                }
            }
        }
        let even = comm.signature::<f32>(Op::AllGather, 64);
        let listed = CallSig { split: Split::PerRank(&[64, 64, 64]), ..even };
        assert_eq!(comm.plan().select(&even), comm.plan().select(&listed));
    });
}

/// NaN payloads, infinities, subnormals and -0.0 arrive as they left.
pub fn copies_keep_every_bit(target: &str) {
    run(2, &Plan::forcing(target), |comm| {
        for op in [Op::AllGather, Op::Broadcast, Op::AllToAll] {
            for &dtype in Dtype::ALL {
                let mut case = Case::new(op, dtype, 2048, dtype as u64);
                case.values = Values::Bits;
                case.check(comm);
            }
        }
    });
}

/// Values whose sum depends on the order: the class `rank_ordered`, at many sizes and worlds.
pub fn order_of_addition(target: &str) {
    for world in [2, 3, 5, 8] {
        run(world, &Plan::forcing(target), |comm| {
            for (seed, count) in [1, 17, 1000, 33_333].into_iter().enumerate() {
                for op in [Op::AllReduce, Op::ReduceScatter] {
                    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64, Dtype::F8E4M3] {
                        let fewer = if dtype == Dtype::F8E4M3 { count.min(100) } else { count };
                        for reduce_op in [ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Max] {
                            let mut case = Case::new(op, dtype, fewer, seed as u64);
                            case.values = Values::Rough;
                            case.call.reduce_op = reduce_op;
                            case.check(comm);
                        }
                    }
                }
            }
        });
    }
}

/// A lagging rank must not read what its peers have put into their inputs since.
pub fn input_is_free_on_return(target: &str) {
    run(3, &Plan::forcing(target), |comm| {
        for seed in 0..200 {
            if seed % 3 == u64::from(comm.rank()) {
                std::thread::sleep(Duration::from_micros(seed % 7 * 30));
            }
            let op = Op::ALL[seed as usize % Op::ALL.len()];
            Case::new(op, Dtype::F32, 1 + (seed as usize * 37) % 3000, seed).check(comm);
        }
    });
}

/// Sizes and ops that change from call to call while every rank lags now and then.
pub fn mixed_calls_with_lagging_ranks(target: &str) {
    run(4, &Plan::forcing(target), |comm| {
        let mut shape = Rng::new(1, 0); // the same on every rank
        let mut delay = Rng::new(2, comm.rank()); // not the same
        for seed in 0..250 {
            let op = Op::ALL[shape.below(5) as usize];
            let dtype = Dtype::ALL[shape.below(10) as usize];
            let count = [0, 1, 7, 1000, 40_000, 270_001][shape.below(6) as usize];
            let mut case = Case::new(op, dtype, count, seed);
            case.call.root = shape.below(4) as u32;
            case.in_place = shape.below(2) == 1;
            if delay.below(8) == 0 {
                std::thread::sleep(Duration::from_micros(delay.below(400)));
            }
            case.check(comm);
        }
    });
}

/// Three groups at once, each of two ranks, on threads of their own.
pub fn several_groups_at_once(target: &str) {
    let plan = Plan::forcing(target);
    std::thread::scope(|scope| {
        for group in 0..3u64 {
            let plan = &plan;
            scope.spawn(move || {
                run(2, plan, |comm| {
                    for seed in 0..100 {
                        Case::new(Op::AllReduce, Dtype::I32, 999, group << 32 | seed).check(comm);
                    }
                })
            });
        }
    });
}

/// Calls of two threads on one group are run one after the other, and every one is run. Which of a
/// peer's threads a call meets is not promised, so all of them give ones.
pub fn two_threads_on_one_group(target: &str) {
    run(2, &Plan::forcing(target), |comm| {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        // Whichever thread of the peer this meets, it gives ones too.
                        let mut data = [1i32; 33];
                        comm.all_reduce_in_place(&mut data, ReduceOp::Sum).expect("it runs");
                        assert_eq!(data, [2; 33]);
                    }
                });
            }
        });
        let calls: u64 = comm.counters().iter().map(|c| c.calls).sum();
        assert_eq!(calls, 400);
    });
}

/// Nothing to move is still a call.
pub fn empty_calls_advance_together(target: &str) {
    run(3, &Plan::forcing(target), |comm| {
        for seed in 0..20 {
            for &op in Op::ALL {
                Case::new(op, Dtype::F32, 0, seed).check(comm);
            }
            Case::new(Op::AllReduce, Dtype::F32, 5, seed).check(comm);
        }
        let empty = comm.counters().into_iter().filter(|c| c.at_least == 0);
        assert_eq!(empty.map(|c| c.calls).sum::<u64>(), 100);
    });
}

/// The counters say what ran, and `explain` says the same before.
pub fn counters_and_explain_tell_what_ran(target: &str) {
    run(2, &Plan::forcing(target), |comm| {
        let call = comm.signature::<f32>(Op::AllReduce, 100);
        let explained = comm.explain(&call).chosen.expect("it is served").target;
        assert!(explained.starts_with(target), "{explained} for {target}");
        for seed in 0..5 {
            Case::new(Op::AllReduce, Dtype::F32, 100, seed).check(comm);
        }
        let counters = comm.counters();
        assert_eq!(counters.len(), 1);
        let line = &counters[0];
        assert_eq!((line.target.as_str(), line.calls, line.bytes), (&*explained, 5, 2000));
        assert_eq!((line.op, line.at_least), (Op::AllReduce, 256));
        comm.close().expect("both close");
        comm.close().expect("a second close does nothing");
        let after = comm.all_reduce_in_place(&mut [1f32], ReduceOp::Sum);
        assert_eq!(after, Err(CallError::Closed));
    });
}
