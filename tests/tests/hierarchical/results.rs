//! Every call has the right result, bit for bit: its data are such that any order adds them exactly.

use std::error::Error;

use crossover_core::call::{Dtype, Mode, Op, ReduceOp};
use crossover_device::stream::Stream;
use crossover_tests::device::{Case, Prepared, Rank, Room, Stand};

use crate::nodes::{ALL, FOUR, run, target};
use crate::stage::tests_apart;

const FLOATS: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::Bf16];

tests_apart! {
    fn sums_over_nodes_of_any_number_and_order(stand) {
        let target = target();
        for nodes in ALL {
            run(stand, nodes, |rank| {
                // Of fewer elements than a node has ranks, of none, of odd numbers of them.
                for (seed, count) in (0..).zip([1, 0, 2, 3, 5, 64, 257, 1000, 4501]) {
                    for in_place in [false, true] {
                        let dtype = FLOATS[seed as usize % 3];
                        let mut case = Case::new(&target, Op::AllReduce, dtype, count, seed);
                        case.in_place = in_place;
                        case.offset = seed as usize % 3 * rank.number();
                        case.check(rank);
                    }
                }
            });
        }
    }

    fn every_dtype_and_reduce_op(stand) {
        let target = target();
        run(stand, FOUR, |rank| {
            for dtype in target.dtypes(Op::AllReduce) {
                for reduce_op in target.reduce_ops() {
                    let mut case = Case::new(&target, Op::AllReduce, dtype, 259, 5);
                    case.call.reduce_op = reduce_op;
                    case.check(rank);
                }
            }
            assert_eq!(target.dtypes(Op::AllReduce).len() * target.reduce_ops().len(), 9);
        });
    }

    fn calls_of_several_pieces(stand) {
        let target = target();
        let (_, stage) = stand.rooms();
        run(stand, &[0, 1, 0, 1, 0, 1], |rank| {
            for (seed, bytes) in (0..).zip([stage, 3 * stage + 4, 7 * stage + 20]) {
                Case::new(&target, Op::AllReduce, Dtype::F32, bytes / 4, seed).check(rank);
            }
        });
    }

    fn calls_back_to_back_with_a_rank_that_comes_late(stand) {
        let target = target();
        run(stand, &[0, 1, 1, 0], |rank| {
            let prepared: Vec<Prepared<'_>> = (0..30)
                .map(|seed| {
                    let count = 1 + (seed as usize * 211) % 1999;
                    let dtype = FLOATS[seed as usize % 3];
                    Case::new(&target, Op::AllReduce, dtype, count, seed).prepare(rank, &rank.room)
                })
                .collect();
            rank.meet("loaded");
            if rank.number() == 1 {
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
            for call in &prepared {
                call.enqueue(rank).expect("the call can be made");
                call.spoil(rank);
            }
            rank.finish().expect("all succeed");
            prepared.iter().for_each(|call| call.check(rank));
        });
    }

    fn two_streams_by_turns_and_one_that_goes(stand) {
        let target = target();
        run(stand, FOUR, |rank| {
            let case = |seed: u64| Case::new(&target, Op::AllReduce, Dtype::F32, 300, seed);
            let prepared: Vec<_> = (0..10).map(|seed| case(seed).prepare(rank, &rank.room)).collect();
            let mut other = Stream::new(&rank.device).expect("a stream");
            rank.meet("loaded");
            for call in &prepared {
                call.enqueue(rank).expect("the call can be made");
                std::mem::swap(&mut rank.stream, &mut other);
            }
            other.synchronize().expect("kernels end by themselves");
            rank.comm().leave_stream(other.raw()).expect("it lives");
            drop(other);
            rank.finish().expect("all succeed");
            prepared.iter().for_each(|call| call.check(rank));
        });
    }

    fn graphs_are_replayed_with_new_data(stand) {
        graphs(stand);
    }

    fn a_capture_that_failed_is_forgotten(stand) {
        let target = target();
        run(stand, FOUR, |rank| {
            let case = graph_case(&target, 40, 1);
            let call = case.prepare(rank, &rank.room);
            rank.comm().prepare(&[*call.call()]).expect("it can be made ready");
            let captured = rank.stream.capture(|| {
                call.enqueue(rank)?;
                Err::<(), Box<dyn Error>>("the engine has failed".into())
            });
            assert!(captured.is_err());
            rank.comm().discard();
            replayed(rank, &mut [graph_case(&target, 77, 2).prepare(rank, &rank.room)]);
        });
    }

    fn ranks_that_have_captured_different_calls_are_told_so(stand) {
        let target = target();
        run(stand, FOUR, |rank| {
            let count = if rank.number() == 2 { 60 } else { 40 };
            let call = graph_case(&target, count, 1).prepare(rank, &rank.room);
            rank.comm().prepare(&[*call.call()]).expect("it can be made ready");
            let captured =
                rank.stream.capture(|| call.enqueue(rank).map_err(Box::<dyn Error>::from));
            // The kernels' board has seen it already, unless this rank was the first.
            let seen = captured.err().map(|e| e.to_string());
            let why = rank.comm().commit_over(rank.boot).expect_err("they differ").to_string();
            let told = [seen.unwrap_or_default(), why].concat();
            assert!(told.contains("different calls"), "{told}");
        });
    }
}

fn graph_case(target: &crossover_tests::device::Target, count: usize, seed: u64) -> Case<'_> {
    let mut case = Case::new(target, Op::AllReduce, Dtype::F32, count, seed);
    case.call.mode = Mode::Graph;
    case
}

/// Captures, commits and replays these calls, with new data each time and an eager call between.
fn replayed(rank: &Rank<'_>, calls: &mut [Prepared<'_>]) {
    let signatures: Vec<_> = calls.iter().map(|call| *call.call()).collect();
    rank.comm().prepare(&signatures).expect("all can be made ready");
    let captured = rank.stream.capture(|| {
        for call in calls.iter() {
            call.enqueue(rank)?;
            call.spoil(rank);
        }
        Ok::<(), Box<dyn Error>>(())
    });
    let graph = captured.expect("the calls can be captured");
    rank.comm().commit_over(rank.boot).expect("all have captured the same");
    let room = Room::new(&rank.device, 64 * 1024).expect("room");
    let target = target();
    for round in 0..4 {
        for (nth, call) in (0..).zip(calls.iter_mut()) {
            call.load(rank, 100 * round + nth);
        }
        graph.replay(rank.stream.raw()).expect("it can be replayed");
        rank.finish().expect("all succeed");
        calls.iter().for_each(|call| call.check(rank));
        room.clear();
        let mut eager = Case::new(&target, Op::AllReduce, Dtype::Bf16, 31, round);
        eager.call.reduce_op = ReduceOp::Sum;
        let eager = eager.prepare(rank, &room);
        eager.enqueue(rank).expect("eager calls go between");
        rank.finish().expect("it succeeds");
        eager.check(rank);
    }
}

fn graphs(stand: &Stand) {
    let target = target();
    for nodes in [FOUR, &[0, 0, 1, 1, 2, 2]] {
        run(stand, nodes, |rank| {
            let counts = [64, 1, 501, 1000, 3];
            let case = |(nth, count): (u64, &usize)| {
                let mut case = graph_case(&target, *count, nth);
                case.in_place = nth % 2 == 1;
                case.prepare(rank, &rank.room)
            };
            let mut calls: Vec<_> = (0..).zip(&counts).map(case).collect();
            replayed(rank, &mut calls);
        });
    }
}
