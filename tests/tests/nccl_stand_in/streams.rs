//! When things are done: in stream order, at every replay, all of a group at once.

use std::ffi::c_void;
use std::thread;
use std::time::Duration;

use crossover_device::driver::Driver;
use crossover_nccl_sys::layout::{Config, DataType, RedOp, Status};

use super::group::{Bench, Rank, ok};

impl Rank<'_> {
    /// The sum of `numbers`, in place, on a stream.
    pub(crate) fn sum_on(&self, numbers: &mut [u32], stream: u64) -> Status {
        let at = numbers.as_mut_ptr().cast::<c_void>();
        let all_reduce = self.bench.nccl.calls.all_reduce;
        let (count, stream) = (numbers.len(), stream as *mut c_void);
        // SAFETY: callers wait for it before the numbers are gone.
        unsafe { all_reduce(at, at, count, DataType::U32, RedOp::SUM, self.comm, stream) }
    }

    /// The same on the rank's own.
    pub(crate) fn sum(&self, numbers: &mut [u32]) -> Status {
        self.sum_on(numbers, self.stream)
    }

    fn send(&self, bytes: &[u8], peer: usize) -> Status {
        let send = self.bench.nccl.calls.send;
        let (from, count, peer) = (bytes.as_ptr().cast(), bytes.len(), peer as i32);
        // SAFETY: as above.
        unsafe { send(from, count, DataType::U8, peer, self.comm, self.raw_stream()) }
    }

    fn receive(&self, bytes: &mut [u8], peer: usize) -> Status {
        let recv = self.bench.nccl.calls.recv;
        let (to, count, peer) = (bytes.as_mut_ptr().cast(), bytes.len(), peer as i32);
        // SAFETY: as above.
        unsafe { recv(to, count, DataType::U8, peer, self.comm, self.raw_stream()) }
    }

    fn grouped(&self, calls: impl FnOnce()) -> Status {
        // SAFETY: a group is this thread's.
        ok(unsafe { (self.bench.nccl.calls.group_start)() });
        calls();
        // SAFETY: as above.
        unsafe { (self.bench.nccl.calls.group_end)() }
    }
}

/// Oversleeps in a stream.
unsafe extern "C" fn oversleep(_: *mut c_void) {
    thread::sleep(Duration::from_millis(40));
}

fn delay(rank: &Rank<'_>) {
    // SAFETY: it has no argument.
    unsafe { rank.bench.driver.host_function(rank.stream, oversleep, std::ptr::null_mut()) }
        .expect("the stream lives");
}

#[test]
fn the_input_is_read_when_the_stream_comes_to_it() {
    let Some(bench) = Bench::new() else { return };
    bench.ranks(2, |rank| {
        let mut numbers = [1u32; 8];
        if rank.rank == 0 {
            delay(rank);
        }
        let at = numbers.as_mut_ptr() as u64;
        // SAFETY: the stream is waited for.
        unsafe { rank.bench.driver.fill(at, 5 + rank.rank as u32, 8, rank.stream) }.unwrap();
        ok(rank.sum(&mut numbers));
        rank.synchronize();
        assert_eq!(numbers, [11; 8]);
    });
}

#[test]
fn a_graph_exchanges_at_every_replay() {
    let Some(bench) = Bench::new() else { return };
    bench.ranks(3, |rank| {
        let driver = &rank.bench.driver;
        let mut numbers = [1u32; 5000];
        let mut eager = [rank.rank as u32; 3];
        driver.begin_capture(rank.stream).unwrap();
        ok(rank.sum(&mut numbers));
        ok(rank.sum(&mut numbers));
        let graph = driver.end_capture(rank.stream).unwrap();
        rank.synchronize();
        assert_eq!(numbers, [1; 5000]);
        driver.replay(graph, rank.stream).unwrap();
        ok(rank.sum(&mut eager));
        driver.replay(graph, rank.stream).unwrap();
        rank.synchronize();
        assert_eq!((numbers[4999], eager), (81, [3; 3]));
        // Nobody ends it while a peer may still be at it.
        ok(rank.finalize());
        ok(rank.destroy());
        driver.replay(graph, rank.stream).unwrap();
        rank.synchronize();
        assert_eq!(numbers, [81; 5000]);
    });
}

#[test]
fn calls_on_two_streams_keep_the_order_of_their_launch() {
    let Some(bench) = Bench::new() else { return };
    bench.ranks(2, |rank| {
        let other = rank.bench.driver.create_stream().unwrap();
        let (mut first, mut second) = ([1u32; 6], [rank.rank as u32; 4]);
        if rank.rank == 1 {
            delay(rank);
        }
        ok(rank.sum(&mut first));
        ok(rank.sum_on(&mut second, other.0));
        rank.bench.driver.synchronize_stream(other.0).unwrap();
        rank.synchronize();
        assert_eq!((first, second), ([2; 6], [1; 4]));
        assert_eq!(rank.state(), Status::SUCCESS);
        rank.bench.driver.destroy_stream(other).unwrap();
    });
}

#[test]
fn a_group_of_sends_and_receives_waits_for_none_of_its_own() {
    let Some(bench) = Bench::new() else { return };
    bench.ranks(4, |rank| {
        // Each sends each, itself too, its own amount; some send nothing.
        let bytes_from = |rank: usize, peer: usize| rank * 30_000 + peer * 3;
        let out: Vec<Vec<u8>> = (0..4)
            .map(|peer| vec![(rank.rank * 16 + peer) as u8; bytes_from(rank.rank, peer)])
            .collect();
        let mut come: Vec<Vec<u8>> =
            (0..4).map(|peer| vec![0xee; bytes_from(peer, rank.rank)]).collect();
        ok(rank.grouped(|| {
            for (peer, out) in out.iter().enumerate() {
                ok(rank.send(out, peer));
            }
            for peer in (0..4).rev() {
                ok(rank.receive(&mut come[peer], peer));
            }
        }));
        rank.synchronize();
        for (peer, come) in come.iter().enumerate() {
            assert!(come.iter().all(|byte| *byte == (peer * 16 + rank.rank) as u8));
        }
    });
}

#[test]
fn a_group_of_collectives_is_one_launch() {
    let Some(bench) = Bench::new() else { return };
    bench.stand.fail(Some("rank=1 call=4 fail"));
    bench.ranks(2, |rank| {
        let (mut few, mut many) = ([1u32; 2], vec![rank.rank as u32; 30_000]);
        let mut told = [rank.rank as u8 + 7; 9];
        let out = told;
        ok(rank.grouped(|| {
            ok(rank.sum(&mut many));
            ok(rank.sum(&mut few));
            match rank.rank {
                0 => ok(rank.send(&out, 1)),
                _ => ok(rank.receive(&mut told, 0)),
            }
        }));
        rank.synchronize();
        assert_eq!((few, many[29_999], told), ([2; 2], 1, [7; 9]));
        if rank.rank == 1 {
            let group = rank.grouped(|| {
                assert_eq!(rank.sum(&mut few), Status::UNHANDLED_CUDA_ERROR);
                ok(rank.sum(&mut few));
            });
            assert_eq!(group, Status::UNHANDLED_CUDA_ERROR);
            rank.synchronize();
            assert_eq!(few, [2; 2]);
        }
    });
}

#[test]
fn what_does_not_block_is_in_progress_until_it_is_asked_for() {
    let Some(bench) = Bench::new() else { return };
    bench.ranks_of(2, Config::new().blocking(false), |rank| {
        assert_eq!(rank.began, Status::IN_PROGRESS);
        ok(rank.settle());
        let mut numbers = [1u32; 3];
        assert_eq!(rank.sum(&mut numbers), Status::IN_PROGRESS);
        assert_eq!(rank.sum(&mut [0]), Status::INVALID_ARGUMENT);
        rank.synchronize();
        assert_eq!(numbers, [1; 3]);
        ok(rank.settle());
        rank.synchronize();
        assert_eq!(numbers, [2; 3]);
        ok(rank.sum(&mut numbers));
        rank.synchronize();
        assert_eq!(rank.finalize(), Status::IN_PROGRESS);
        ok(rank.settle());
        ok(rank.destroy());
    });
    assert_eq!(bench.stand.alive().communicators, 0);
}
