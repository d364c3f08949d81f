//! A line's way is timed again between calls, and nothing shows of it but where data go.

use std::time::{Duration, Instant};

use crossover_core::backend::EnqueueError;
use crossover_core::call::{CallSig, Dtype, Op, ReduceOp, Split};

use super::data::{call, expected, input_bytes, random, run, sum};
use super::{group, is_seen, settings};
use crate::distance::Distance;
use crate::session::HostSession;

/// A number for call `k`, for which [`super::data::ways`] writes what is given past the caches where ranks
/// are far: so that their distance matters.
fn seq(k: u64) -> u64 {
    7 + k % 7 + 21 * (k / 7)
}

/// Makes a call of new data, and returns if its result was right.
fn is_right(
    session: &mut HostSession,
    (k, call): (u64, &CallSig<'_>),
    (rank, world): (u32, u32),
) -> Result<bool, EnqueueError> {
    let seq = seq(k);
    let seed = |r: u32| seq << 8 | u64::from(r);
    let inputs: Vec<Vec<u8>> =
        (0..world).map(|r| random(call.dtype, input_bytes(call, r), seed(r))).collect();
    let algorithm = (k / 6 % 2) as usize;
    let got = run(session, (algorithm, seq, call), (rank, &inputs), (seq as usize % 8, false))?;
    Ok(got == expected(call, &inputs, rank))
}

#[test]
fn ranks_agree_whatever_is_found_and_results_are_right() {
    for world in [2, 3] {
        let counts: Vec<usize> = (0..world).map(|r| 1000 + 777 * r as usize).collect();
        let most = *counts.last().unwrap();
        let calls = [
            sum(3000),
            call(Op::AllGather, Dtype::U8, ReduceOp::Sum, 5001),
            call(Op::ReduceScatter, Dtype::Bf16, ReduceOp::Max, 1500 * world as usize),
            CallSig { root: 1, ..call(Op::Broadcast, Dtype::F32, ReduceOp::Sum, 2047) },
            call(Op::AllToAll, Dtype::I32, ReduceOp::Sum, 1111 * world as usize),
            CallSig {
                split: Split::PerRank(&counts),
                ..call(Op::AllGather, Dtype::I32, ReduceOp::Sum, most)
            },
        ];
        let found = group(world, &settings("1KiB"), |rank, mut session| {
            let mut found = Vec::new();
            for k in 0..120 {
                // Before each call in turn, by each algorithm, believed near and far.
                let is_timed = k % 5 == 0;
                if is_timed {
                    // A rank is late, each in turn.
                    if (k / 5) as u32 % world == rank {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    session.distance = Distance::due(k / 60 == 0);
                }
                let call = &calls[k as usize % calls.len()];
                assert!(is_right(&mut session, (k, call), (rank, world)).unwrap(), "{call:?}");
                assert_ne!(session.distance, Distance::due(session.distance.far), "call {k}");
                found.push(session.distance);
            }
            found
        });
        for rank in 1..world as usize {
            assert_eq!(found[rank], found[0]);
        }
    }
}

/// Gives each rank a processor: on one they could not answer one another in time.
fn bind(rank: u32) {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let mut own = rustix::thread::CpuSet::new();
    own.set(cpus.cycle().nth(rank as usize).unwrap());
    rustix::thread::sched_setaffinity(None, &own).unwrap();
}

#[test]
fn what_was_believed_plays_no_part_where_ranks_answer() {
    // Processors may move in between, too.
    let is_seen = is_seen(|| {
        let found = group(2, &settings("1KiB"), |rank, mut session| {
            bind(rank);
            [1, 2].map(|k| {
                session.distance = Distance::due(k == 1);
                assert!(is_right(&mut session, (k, &sum(2000)), (rank, 2)).unwrap());
                session.distance.far
            })
        });
        assert_eq!(found[0], found[1]);
        found[0][0] == found[0][1]
    });
    assert!(is_seen);
}

#[test]
fn a_rank_that_does_not_come_to_a_timing_is_lost_and_one_that_differs_is_told() {
    let errors = group(2, &settings("1KiB"), |rank, mut session| {
        session.distance = Distance::due(true);
        if rank == 1 {
            return None;
        }
        let since = Instant::now();
        let error = is_right(&mut session, (1, &sum(2000)), (0, 2)).unwrap_err();
        assert!(since.elapsed() < Duration::from_secs(5));
        Some(error)
    });
    assert!(matches!(errors[0], Some(EnqueueError::Lost { rank: 1, .. })), "{errors:?}");

    // One of both has a call of so few bytes that nothing is timed.
    let errors = group(2, &settings("1KiB"), |rank, mut session| {
        session.distance = Distance::due(true);
        let count = [2000, 2][rank as usize];
        is_right(&mut session, (2, &sum(count)), (rank, 2)).unwrap_err().to_string()
    });
    let what = "call 9: ranks made different calls: rank 0 has count 2000, rank 1 has 2";
    assert_eq!(errors, [what; 2]);
}
