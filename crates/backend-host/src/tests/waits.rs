//! What waiting costs, and how soon it ends.

use std::time::{Duration, Instant};

use crossover_core::backend::Session;
use crossover_core::call::{CallBuffers, CallSig};
use crossover_core::verdict::Verdict;
use rustix::time::{ClockId, clock_gettime};

use super::data::{sum, ways};
use super::{group, settings};
use crate::session::HostSession;
use crate::wait::Habits;

#[test]
fn a_rank_that_waits_for_long_leaves_its_processor_alone_and_wakes_at_once() {
    let times = group(2, &settings("64KiB"), |rank, mut session| {
        rounds(|seq| {
            if rank == 1 {
                std::thread::sleep(LATE);
            }
            timed(|| all_reduce(&mut session, seq))
        })
    });
    // The late rank is on its way when it begins its call; both are done by then.
    let lags = times[0].iter().zip(&times[1]).map(|(early, late)| early.end - late.begin).collect();
    assert_most(lags, Duration::from_millis(2));
    let busy = times[0].iter().map(|waited| waited.busy).collect();
    assert_most(busy, Duration::from_millis(10));
}

#[test]
fn it_does_where_barriers_cannot_be_had_but_looks_each_millisecond() {
    let times = group(2, &settings("64KiB"), |rank, mut session| {
        session.habits = Habits::new(rank, 2, 2, false, Duration::from_secs(60));
        rounds(|seq| {
            if rank == 1 {
                std::thread::sleep(LATE);
            }
            timed(|| all_reduce(&mut session, seq))
        })
    });
    let lags = times[0].iter().zip(&times[1]).map(|(early, late)| early.end - late.begin).collect();
    assert_most(lags, Duration::from_millis(4));
    assert_most(times[0].iter().map(|waited| waited.busy).collect(), LATE / 4);
}

#[test]
fn an_abort_wakes_who_sleeps() {
    let lags = (0..ROUNDS).map(|_| {
        let ends = group(2, &settings("64KiB"), |rank, mut session| {
            if rank == 1 {
                std::thread::sleep(LATE);
                let aborted = Instant::now();
                session.abort_handle().abort(&Verdict::aborted(1, "enough"));
                return aborted;
            }
            assert!(all_reduce(&mut session, 1).is_err());
            Instant::now()
        });
        ends[0] - ends[1]
    });
    assert_most(lags.collect(), Duration::from_millis(2));
}

const ROUNDS: u64 = 5;
const LATE: Duration = Duration::from_millis(300);

/// One call on one rank.
struct Timed {
    begin: Instant,
    end: Instant,
    /// What its thread computed meanwhile.
    busy: Duration,
}

fn timed(run: impl FnOnce() -> Result<(), crossover_core::backend::EnqueueError>) -> Timed {
    let (begin, before) = (Instant::now(), thread_time());
    run().unwrap();
    Timed { begin, end: Instant::now(), busy: thread_time() - before }
}

fn rounds(one: impl FnMut(u64) -> Timed) -> Vec<Timed> {
    (1..=ROUNDS).map(one).collect()
}

/// At most `bound` more often than not: any one time may be the machine's doing.
#[track_caller]
fn assert_most(mut times: Vec<Duration>, bound: Duration) {
    times.sort();
    assert!(times[times.len() / 2] < bound, "{times:?}");
}

fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

fn all_reduce(
    session: &mut HostSession,
    seq: u64,
) -> Result<(), crossover_core::backend::EnqueueError> {
    let call: CallSig<'_> = sum(4);
    let (input, mut output) = ([0u8; 16], [0u8; 16]);
    let buffers = CallBuffers { input: input.as_ptr(), output: output.as_mut_ptr(), stream: 0 };
    // SAFETY: both are as large as the call says.
    unsafe { session.enqueue(0, &ways(seq), seq, &call, &buffers) }
}
