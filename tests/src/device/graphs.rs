//! Calls that are captured into graphs and replayed.

use std::error::Error;
use std::time::Duration;

use crossover_core::call::{Dtype, Mode, Op, Split};
use crossover_core::communicator::CommitError;
use crossover_device::graph::Graph;
use crossover_kernel_emulation::driver::{Allocations, Emulated};

use super::{Case, Prepared, Rank, Room, Stand, Target};

/// So many calls of different sizes, each with tensors of its own.
fn calls<'a>(
    rank: &Rank<'_>,
    room: &Room,
    target: &'a Target,
    number: u64,
    seed: u64,
) -> Vec<Prepared<'a>> {
    let ops = target.ops();
    let case = |nth: u64| {
        let op = ops[nth as usize % ops.len()];
        let count = [64, 1, 501, 1000, 77, 4500, 8][nth as usize % 7];
        let mut case = Case::new(target, op, Dtype::F32, count, seed + nth);
        case.call.mode = Mode::Graph;
        case.call.root = nth as u32;
        case.offset = nth as usize % 2 * rank.number();
        case.in_place = nth % 3 == 2;
        case
    };
    (0..number).map(|nth| case(nth).prepare(rank, room)).collect()
}

/// Prepares and captures them, each followed by what spoils its input.
fn capture(rank: &Rank<'_>, calls: &[Prepared<'_>]) -> Graph {
    let signatures: Vec<_> = calls.iter().map(|call| *call.call()).collect();
    rank.comm().prepare(&signatures).expect("all can be made ready");
    let captured = rank.stream.capture(|| {
        for call in calls {
            call.enqueue(rank)?;
            call.spoil(rank);
        }
        Ok::<(), Box<dyn Error>>(())
    });
    captured.expect("the calls can be captured")
}

/// Replays with new data and looks at every result.
fn replay(rank: &Rank<'_>, graph: &Graph, calls: &mut [Prepared<'_>], seed: u64) {
    for (nth, call) in (0..).zip(calls.iter_mut()) {
        call.load(rank, seed + nth);
    }
    graph.replay(rank.stream.raw()).expect("it can be replayed");
    rank.finish().expect("all succeed");
    calls.iter().for_each(|call| call.check(rank));
}

fn commit(rank: &Rank<'_>) {
    rank.comm().commit_over(rank.boot).expect("all ranks have captured the same");
}

/// An odd number of calls, replayed several times with new data by ranks of which one lags, with
/// eager calls between.
pub fn graphs_of_odd_numbers_of_calls(stand: &Stand, target: &Target) {
    for world in stand.worlds(stand.scale(&[3][..], &[2, 3])) {
        stand.run(world, &stand.plan(target), |rank| {
            let mut calls = calls(rank, &rank.room, target, 7, 1);
            let graph = capture(rank, &calls);
            commit(rank);
            let room = Room::new(&rank.device, 1 << 20).expect("room");
            rank.meet("committed");
            for round in 0..stand.scale(5, 30) {
                if round % rank.world() as u64 == rank.number() as u64 {
                    std::thread::sleep(Duration::from_millis(2));
                    rank.oversleep(Duration::from_micros(200));
                } else {
                    rank.oversleep(Duration::ZERO);
                }
                replay(rank, &graph, &mut calls, 1000 * round);
                room.clear();
                let eager = Case::new(target, target.ops()[0], Dtype::F32, 300, round);
                let eager = eager.prepare(rank, &room);
                eager.enqueue(rank).expect("eager calls go between");
                eager.spoil(rank);
                rank.finish().expect("it succeeds");
                eager.check(rank);
            }
            rank.meet("replayed");
        });
    }
}

/// Inputs in memory that is shared by a handle, as a descriptor, and not at all.
pub fn graphs_of_any_memory(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            let bytes = 1 << 20;
            let mut rooms = vec![
                Room::new(&rank.device, bytes).expect("room"),
                Room::new_virtual(&rank.device, bytes).expect("room"),
            ];
            if stand.is_emulated() {
                Emulated::set_allocations(Allocations::Expandable);
                rooms.push(Room::new(&rank.device, bytes).expect("room"));
                Emulated::set_allocations(Allocations::Legacy);
            }
            rank.meet("all have room");
            for room in &rooms {
                let mut calls = calls(rank, room, target, 3, 1);
                let graph = capture(rank, &calls);
                commit(rank);
                for round in 0..3 {
                    replay(rank, &graph, &mut calls, 100 * round);
                }
                rank.meet("replayed");
            }
        });
    }
}

/// One rank's inputs are in memory that nobody else can map: all ranks stage theirs.
pub fn inputs_that_one_rank_cannot_share(stand: &Stand, target: &Target) {
    if !stand.is_emulated() {
        return;
    }
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            if rank.number() == 1 {
                Emulated::set_allocations(Allocations::Expandable);
            }
            let room = Room::new(&rank.device, 1 << 20).expect("room");
            Emulated::set_allocations(Allocations::Legacy);
            rank.meet("all have room");
            let mut calls = calls(rank, &room, target, 7, 1);
            let graph = capture(rank, &calls);
            commit(rank);
            for round in 0..3 {
                rank.oversleep(Duration::from_micros(200 * (round == rank.number()) as u64));
                replay(rank, &graph, &mut calls, 100 * round as u64);
            }
            rank.meet("replayed");
        });
    }
}

/// Parts that differ, some of them empty, so that a rank has no input at all.
pub fn graphs_of_uneven_parts(stand: &Stand, target: &Target) {
    let large = stand.scale(6_000, 140_000);
    let uneven: [&[usize]; 4] = [&[3, 0, 5], &[0, 0, 7], &[large, 1, large / 2], &[0, large, 9]];
    let ops = target.ops().into_iter().filter(|op| matches!(op, Op::AllGather | Op::ReduceScatter));
    for op in ops {
        for world in stand.worlds(&[3]).into_iter().filter(|world| *world == 3) {
            stand.run(world, &stand.plan(target), |rank| {
                let case = |nth: usize| {
                    let counts = uneven[nth / 2];
                    let count = match op {
                        Op::AllGather => counts.iter().copied().max().expect("three of them"),
                        _ => counts.iter().sum(),
                    };
                    let mut case = Case::new(target, op, Dtype::F16, count, nth as u64);
                    case.call.mode = Mode::Graph;
                    case.call.split = Split::PerRank(counts);
                    case.offset = 2 * (nth % 3) * rank.number();
                    case.in_place = nth % 2 == 1;
                    case
                };
                let mut calls: Vec<_> =
                    (0..7).map(|nth| case(nth).prepare(rank, &rank.room)).collect();
                let graph = capture(rank, &calls);
                commit(rank);
                for round in 0..3 {
                    rank.oversleep(Duration::from_micros(200 * (round == rank.number()) as u64));
                    replay(rank, &graph, &mut calls, 100 * round as u64);
                }
                rank.meet("replayed");
            });
        }
    }
}

/// Two graphs, committed one after the other, replayed by turns.
pub fn two_graphs_by_turns(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[2]) {
        stand.run(world, &stand.plan(target), |rank| {
            let mut first = calls(rank, &rank.room, target, 3, 1);
            let a = capture(rank, &first);
            commit(rank);
            replay(rank, &a, &mut first, 50);
            let mut second = calls(rank, &rank.room, target, 5, 100);
            let b = capture(rank, &second);
            commit(rank);
            for round in 0..stand.scale(4, 20) {
                replay(rank, &a, &mut first, 1000 * round);
                replay(rank, &b, &mut second, 1000 * round + 500);
            }
            rank.meet("replayed");
        });
    }
}

/// A graph that reads its peers' inputs and is replayed too early says so.
pub fn a_graph_that_was_not_committed(stand: &Stand, target: &Target) {
    if !target.reads_rows() {
        return;
    }
    for world in stand.worlds(&[2]) {
        stand.run(world, &stand.plan(target), |rank| {
            let calls = calls(rank, &rank.room, target, 1, 1);
            let graph = capture(rank, &calls);
            // Or one that is ahead ends the group while another still captures.
            rank.meet("captured");
            graph.replay(rank.stream.raw()).expect("the driver does not know");
            let error = rank.finish().expect_err("nothing was exchanged").to_string();
            assert!(error.contains("a graph was replayed before commit()"), "{error}");
            rank.meet("looked");
        });
    }
}

/// Ranks that captured different numbers of calls are told so, all in one sentence.
pub fn unequal_captures_are_refused(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[3]) {
        stand.run(world, &stand.plan(target), |rank| {
            let number = if rank.number() == 1 { 2 } else { 3 };
            let calls = calls(rank, &rank.room, target, number, 1);
            let _graph = capture(rank, &calls);
            let error = rank.comm().commit_over(rank.boot).expect_err("the numbers differ");
            assert!(matches!(error, CommitError::Diverged { .. }), "{error}");
            let all = rank.meet(&error.to_string());
            assert!(all.iter().all(|e| *e == all[0]), "{all:#?}");
            assert!(all[0].contains("rank 0 captured 3, rank 1 captured 2"), "{}", all[0]);
        });
    }
}

/// A capture that the device refuses is forgotten, and the next one is committed as if it had not
/// been.
pub fn a_capture_that_failed_is_forgotten(stand: &Stand, target: &Target) {
    for world in stand.worlds(&[2]) {
        stand.run(world, &stand.plan(target), |rank| {
            let mut calls = calls(rank, &rank.room, target, 3, 1);
            let broken = rank.stream.capture(|| {
                calls[0].enqueue(rank)?;
                Err::<(), Box<dyn Error>>("the engine changed its mind".into())
            });
            broken.expect_err("it failed");
            rank.comm().discard();
            let graph = capture(rank, &calls);
            commit(rank);
            replay(rank, &graph, &mut calls, 10);
            let op = target.ops()[0];
            Case::new(target, op, Dtype::F32, 9, 1).check(rank);
        });
    }
}
