//! How it fails when it is told to, and that an abort frees whoever waits.

use std::ffi::c_void;
use std::thread;
use std::time::{Duration, Instant};

use crossover_nccl_sys::layout::{
    Comm, Config, DataType, RedOp, Status, WINDOW_COLLECTIVE_SYMMETRIC, Window,
};

use super::group::{Bench, Rank, ok, until};

/// A wait that an abort has to end, which else nothing does; on a slow machine too.
const SOON: Duration = Duration::from_secs(10);

/// Aborts from another thread while `wait` waits.
fn abort_during(rank: &Rank<'_>, wait: impl FnOnce()) {
    thread::scope(|scope| {
        let aborted = scope.spawn(|| {
            thread::sleep(Duration::from_millis(30));
            let began = Instant::now();
            rank.abort();
            assert!(began.elapsed() < SOON);
        });
        let began = Instant::now();
        wait();
        assert!(began.elapsed() < Duration::from_millis(30) + SOON);
        aborted.join().expect("the abort returns");
    });
}

fn not_blocking() -> Config {
    Config::new().blocking(false)
}

#[test]
fn an_abort_frees_a_rank_whose_peer_does_not_call() {
    let Some(bench) = Bench::new() else { return };
    bench.ranks(2, |rank| {
        if rank.rank == 1 {
            return;
        }
        let mut numbers = [1u32; 4];
        ok(rank.sum(&mut numbers));
        abort_during(rank, || rank.synchronize());
        assert_eq!(numbers, [1; 4]);
        assert_eq!(rank.destroy(), Status::INVALID_ARGUMENT);
    });
    assert_eq!(bench.stand.alive().communicators, 0);
}

#[test]
fn an_abort_frees_a_rank_whose_peer_does_not_come() {
    let Some(bench) = Bench::new() else { return };
    let rank = bench.join(bench.id(), 0, 2, not_blocking());
    assert_eq!(rank.began, Status::IN_PROGRESS);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(rank.state(), Status::IN_PROGRESS);
    rank.abort();
    assert_eq!(bench.stand.alive().communicators, 0);
}

#[test]
fn an_abort_frees_a_finalize_that_blocks() {
    let Some(bench) = Bench::new() else { return };
    bench.stand.fail(Some("rank=1 finalize=hang"));
    bench.ranks(2, |rank| {
        abort_during(rank, || assert_eq!(rank.finalize(), Status::INTERNAL_ERROR));
    });
}

#[test]
fn an_init_fails_or_hangs() {
    let Some(bench) = Bench::new() else { return };
    bench.stand.fail(Some("rank=1 init=fail"));
    bench.ranks_of(2, not_blocking(), |rank| {
        if rank.rank == 1 {
            assert_eq!(rank.settle(), Status::SYSTEM_ERROR);
        }
    });
    bench.stand.fail(Some("init=hang"));
    bench.ranks_of(2, not_blocking(), |rank| {
        thread::sleep(Duration::from_millis(10));
        assert_eq!(rank.state(), Status::IN_PROGRESS);
    });
    bench.stand.fail(Some("rank=1 init=explode"));
    let statuses = bench.ranks_of(2, not_blocking(), |rank| rank.began);
    assert_eq!(statuses, [Status::INVALID_ARGUMENT; 2]);
}

#[test]
fn a_call_is_refused_or_hangs() {
    let Some(bench) = Bench::new() else { return };
    bench.stand.fail(Some("rank=0 call=2 hang; rank=1 call=3 fail"));
    bench.ranks(2, |rank| {
        let mut numbers = [1u32; 4];
        ok(rank.sum(&mut numbers));
        rank.synchronize();
        ok(rank.sum(&mut numbers));
        assert_eq!(rank.state(), Status::SUCCESS);
        abort_during(rank, || rank.synchronize());
        assert_eq!(numbers, [2; 4]);
    });
    bench.ranks(2, |rank| {
        if rank.rank == 1 {
            let calls = [(); 3].map(|()| rank.sum(&mut [0]));
            let refused = Status::UNHANDLED_CUDA_ERROR;
            assert_eq!(calls, [Status::SUCCESS, Status::SUCCESS, refused]);
            rank.abort();
        }
    });
}

#[test]
fn a_call_fails_later() {
    let Some(bench) = Bench::new() else { return };
    bench.stand.fail(Some("rank=1 call=1 async-error"));
    bench.ranks(2, |rank| {
        ok(rank.sum(&mut [1; 4]));
        if rank.rank == 1 {
            rank.synchronize();
            assert_eq!(rank.state(), Status::REMOTE_ERROR);
            assert_eq!(rank.sum(&mut [1; 4]), Status::REMOTE_ERROR);
        } else {
            thread::sleep(Duration::from_millis(20));
            assert_eq!(rank.state(), Status::SUCCESS);
            rank.abort();
            rank.synchronize();
        }
    });
}

/// As on a device: the kernel faults.
#[test]
fn a_reduction_of_what_is_no_multiple_of_its_elements_fails_later() {
    let Some(bench) = Bench::new() else { return };
    bench.ranks(2, |rank| {
        let mut words = [1u64; 4];
        let from = words.as_mut_ptr().wrapping_byte_add(2 * rank.rank).cast::<c_void>();
        let (comm, stream) = (rank.comm, rank.raw_stream());
        let all_reduce = rank.bench.nccl.calls.all_reduce;
        // SAFETY: the words are awaited, and have room for the elements and what is before.
        ok(unsafe { all_reduce(from, from, 4, DataType::I32, RedOp::SUM, comm, stream) });
        if rank.rank == 1 {
            rank.synchronize();
            assert_eq!(rank.state(), Status::UNHANDLED_CUDA_ERROR);
        } else {
            thread::sleep(Duration::from_millis(20));
            assert_eq!(rank.state(), Status::SUCCESS);
            rank.abort();
            rank.synchronize();
        }
    });
}

#[test]
fn one_element_is_wrong() {
    let Some(bench) = Bench::new() else { return };
    bench.stand.fail(Some("rank=1 call=1 wrong"));
    let wrong = bench.ranks(2, |rank| {
        let mut numbers = [1u32; 9];
        ok(rank.sum(&mut numbers));
        rank.synchronize();
        numbers.iter().filter(|number| **number != 2).count()
    });
    assert_eq!(wrong, [0, 1]);
}

#[test]
fn ranks_that_call_different_things_are_told() {
    let Some(bench) = Bench::new() else { return };
    bench.ranks(2, |rank| {
        let mut numbers = vec![1; 4 + rank.rank];
        ok(rank.sum(&mut numbers));
        rank.synchronize();
        assert_eq!(rank.state(), Status::INVALID_USAGE);
        let last = bench.nccl.optional.get_last_error.expect("this version has it");
        // SAFETY: it lives until this thread asks again.
        let text = unsafe { std::ffi::CStr::from_ptr(last(rank.comm)) }.to_string_lossy();
        assert!(text.contains("calls all_reduce of"), "{text}");
    });
}

impl Rank<'_> {
    fn window(&self, at: *mut c_void, bytes: usize) -> (Status, Window) {
        let register = self.bench.nccl.optional.comm_window_register.expect("it has windows");
        let mut window = std::ptr::null_mut();
        let flags = WINDOW_COLLECTIVE_SYMMETRIC;
        // SAFETY: the memory lives until the window is given back.
        let status = unsafe { register(self.comm, at, bytes, &raw mut window, flags) };
        (status, window)
    }
}

#[test]
fn windows_are_of_its_own_memory_and_of_one_size() {
    let Some(bench) = Bench::new() else { return };
    let table = &bench.nccl.optional;
    let (alloc, free) = (table.mem_alloc.unwrap(), table.mem_free.unwrap());
    let deregister = table.comm_window_deregister.unwrap();
    let page = crossover_nccl_sys::layout::WINDOW_ALIGNMENT;
    bench.stand.told();
    bench.ranks(2, |rank| {
        let mut at = std::ptr::null_mut();
        // SAFETY: the memory is given back below.
        ok(unsafe { alloc(&raw mut at, page) });
        let (status, window) = rank.window(at, page);
        ok(status);
        assert!(!window.is_null());
        // SAFETY: the memory is a page.
        let numbers = unsafe { std::slice::from_raw_parts_mut(at.cast::<u32>(), 1024) };
        ok(rank.sum(numbers));
        rank.synchronize();
        assert_eq!(rank.window(at.wrapping_byte_add(8), 16).0, Status::INVALID_ARGUMENT);
        let mut foreign = [0u64; 2048];
        let foreign = foreign.as_mut_ptr().map_addr(|at| at.next_multiple_of(page));
        assert_eq!(rank.window(foreign.cast(), 8).0, Status::INVALID_ARGUMENT);
        assert_eq!(rank.window(at, 256 << rank.rank).0, Status::INVALID_ARGUMENT);
        // SAFETY: nothing uses them any more.
        unsafe {
            assert_eq!(free(at), Status::INVALID_USAGE);
            ok(deregister(rank.comm, window));
            assert_eq!(deregister(rank.comm, window), Status::INVALID_ARGUMENT);
            ok(free(at));
        }
    });
    let told = bench.stand.told();
    assert!(told.contains("rank 1 of 2: all_reduce count=1024 dtype=3 op=0 symmetric\n"), "{told}");
    assert_eq!(bench.stand.alive(), Default::default());
}

#[test]
fn memory_and_windows_are_refused() {
    let Some(bench) = Bench::new() else { return };
    let alloc = bench.nccl.optional.mem_alloc.unwrap();
    let free = bench.nccl.optional.mem_free.unwrap();
    let mut at = std::ptr::null_mut();
    bench.stand.fail(Some("memory=fail"));
    // SAFETY: the pointer is valid.
    assert_eq!(unsafe { alloc(&raw mut at, 1) }, Status::UNHANDLED_CUDA_ERROR);
    bench.stand.fail(Some("rank=0 window=fail; rank=1 window=null"));
    bench.ranks(2, |rank| {
        let mut at = std::ptr::null_mut();
        // SAFETY: the memory is given back below.
        ok(unsafe { alloc(&raw mut at, 1) });
        let status = [Status::UNHANDLED_CUDA_ERROR, Status::SUCCESS][rank.rank];
        assert_eq!(rank.window(at, 1), (status, std::ptr::null_mut()));
        // SAFETY: nothing has it.
        ok(unsafe { free(at) });
    });
}

#[test]
fn a_split_has_its_own_ranks() {
    let Some(bench) = Bench::new() else { return };
    let split = bench.nccl.optional.comm_split.unwrap();
    let got = bench.ranks(4, |rank| {
        // Rank 3 is in none; the others in the reverse of their order.
        let color = if rank.rank == 3 { -1 } else { i32::from(rank.rank == 1) };
        let mut child: Comm = std::ptr::null_mut();
        let null = std::ptr::null_mut();
        // SAFETY: the pointers are valid.
        ok(unsafe { split(rank.comm, color, -(rank.rank as i32), &raw mut child, null) });
        if child.is_null() {
            return (0, 0, [0]);
        }
        let part = Rank {
            bench: rank.bench,
            comm: child,
            rank: 0,
            world: 0,
            stream: rank.stream,
            began: Status::SUCCESS,
        };
        let (mut count, mut number) = (0, 0);
        // SAFETY: the pointers are valid.
        unsafe {
            ok((bench.nccl.calls.comm_count)(child, &raw mut count));
            ok((bench.nccl.calls.comm_user_rank)(child, &raw mut number));
        }
        let mut numbers = [rank.rank as u32 + 1];
        ok(part.sum(&mut numbers));
        part.synchronize();
        ok(part.destroy());
        // The stream is the parent's.
        std::mem::forget(part);
        (count, number, numbers)
    });
    assert_eq!(got, [(2, 1, [4]), (1, 0, [2]), (2, 0, [4]), (0, 0, [0])]);
    until(|| bench.stand.alive().communicators == 0);
}
