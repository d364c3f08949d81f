//! What it refuses, and what builds of it lack.

use std::thread;

use crossover_nccl_sys::layout::{CollConfig, Config, DataType, RedOp, Status};
use crossover_nccl_sys::{Library, Vendor};
use crossover_tests::nccl::stand_in;

use super::group::{Bench, ok};

#[test]
fn a_version_lacks_what_it_lacked() {
    let Some(bench) = Bench::of(&["DISTINCT_DEVICES", "VERSION=21705"]) else { return };
    assert_eq!(bench.nccl.version.to_string(), "2.17.5");
    let missing = bench.nccl.optional.missing();
    for symbol in ["ncclCommSplit", "ncclMemAlloc", "ncclCommWindowRegister", "ncclAllReduceConfig"]
    {
        assert!(missing.contains(&symbol), "{missing:?}");
    }
    assert!(bench.nccl.optional.get_last_error.is_some());
    bench.ranks(2, |rank| {
        let (at, comm, stream) = ([0u8; 4].as_mut_ptr().cast(), rank.comm, rank.raw_stream());
        let all_reduce = rank.bench.nccl.calls.all_reduce;
        // SAFETY: it is refused.
        let status = unsafe { all_reduce(at, at, 4, DataType::F8E4M3, RedOp::SUM, comm, stream) };
        assert_eq!(status, Status::INVALID_ARGUMENT);
        ok(rank.sum(&mut [1]));
        rank.synchronize();
    });
}

#[test]
fn macros_take_symbols_away() {
    let macros =
        ["DISTINCT_DEVICES", "WITHOUT_WINDOWS", "WITHOUT_COLL_CONFIG", "WITHOUT_MEM_ALLOC"];
    let Some(bench) = Bench::of(&macros) else { return };
    let missing = bench.nccl.optional.missing();
    assert!(missing.contains(&"ncclMemFree") && missing.contains(&"ncclCommWindowDeregister"));
    assert!(missing.contains(&"ncclBroadcastConfig") && !missing.contains(&"ncclCommSplit"));
    let path = stand_in(&["WITHOUT_UNIQUE_ID"]).expect("there is a compiler");
    let why = Library::load(Some(&path), Vendor::Nccl).expect_err("it lacks what is required");
    assert!(why.to_string().contains("ncclGetUniqueId"), "{why}");
}

#[test]
fn ranks_of_two_versions_are_refused() {
    let Some(other) = Bench::of(&["DISTINCT_DEVICES", "VERSION=22809"]).map(|it| it.nccl) else {
        return;
    };
    let Some(bench) = Bench::new() else { return };
    let id = bench.id();
    let config = Config::new().blocking(true);
    let statuses = thread::scope(|scope| {
        let ours = scope.spawn(|| bench.join(id, 0, 2, Config::new().blocking(true)).settle());
        let mut comm = std::ptr::null_mut();
        let mut config = config;
        // SAFETY: the pointers are valid; it makes no communicator.
        let theirs = unsafe {
            (other.calls.comm_init_rank_config)(&raw mut comm, 2, id, 1, &raw mut config)
        };
        [ours.join().expect("no panic"), theirs]
    });
    assert_eq!(statuses, [Status::INVALID_USAGE; 2]);
}

#[test]
fn ranks_that_do_not_fit_are_refused() {
    let Some(bench) = Bench::new() else { return };
    let quick = || Config::new().blocking(false);
    assert_eq!(bench.join(bench.id(), 2, 2, quick()).began, Status::INVALID_ARGUMENT);
    let wrong = Config { magic: 0, ..quick() };
    assert_eq!(bench.join(bench.id(), 0, 1, wrong).began, Status::INVALID_ARGUMENT);
    assert_eq!(bench.join(bench.id(), 0, 1, quick().ctas(4, 2)).began, Status::INVALID_ARGUMENT);
    let id = bench.id();
    let alone = bench.join(id, 0, 1, Config::new().blocking(true));
    ok(alone.settle());
    let late = bench.join(id, 0, 1, Config::new().blocking(true));
    assert_eq!(late.began, Status::SYSTEM_ERROR, "the id was used");
}

#[test]
fn a_call_can_choose_blocks_and_algorithms_that_there_are() {
    let Some(bench) = Bench::new() else { return };
    bench.stand.told();
    bench.ranks_of(2, Config::new().blocking(true).ctas(1, 4), |rank| {
        let all_reduce = bench.nccl.optional.all_reduce_config.expect("this version has it");
        let mut numbers = [1u32; 2];
        let at = numbers.as_mut_ptr().cast();
        let (comm, stream) = (rank.comm, rank.raw_stream());
        let call = |config: CollConfig| {
            // SAFETY: it is awaited.
            unsafe {
                all_reduce(at, at, 2, DataType::U32, RedOp::SUM, comm, stream, &raw const config)
            }
        };
        ok(call(CollConfig::new().ctas(2, 2).algorithms(c"ring")));
        assert_eq!(call(CollConfig::new().algorithms(c"circle")), Status::INVALID_USAGE);
        assert_eq!(call(CollConfig::new().algorithms(c"SYMK")), Status::INVALID_USAGE);
        rank.synchronize();
        assert_eq!(numbers, [2; 2]);
    });
    let told = bench.stand.told();
    assert!(told.contains("rank 0 of 2: init blocking=1 cga_cluster_size=- min_ctas=1 max_ctas=4"));
    assert!(told.contains("op=0 min_ctas=2 max_ctas=2 algorithms=ring\n"), "{told}");
}
