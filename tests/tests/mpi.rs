//! Backend `mpi` over a real MPI library, its ranks processes that the library's launcher started, on
//! what their reports say are two nodes.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use crossover_bootstrap::{Launch, Options, Place, connect, exit};
use crossover_core::call::{Dtype, Op, ReduceOp};
use crossover_core::communicator::Communicator;
use crossover_core::facts::RankReport;
use crossover_tests::conformance::Case;
use crossover_tests::groups::{self, Plan};
use crossover_tests::mpi::{self, Job, tell};

#[path = "mpi/hosts.rs"]
mod hosts;

/// The suite's tests, each with as many ranks as its largest group has.
macro_rules! suite {
    ($($module:ident => $target:literal),+: $tests:tt) => {
        $(suite!(@module $module $target $tests);)+
    };
    (@module $module:ident $target:literal { $($test:ident: $ranks:literal,)+ }) => {
        mod $module {
            $(#[test]
            fn $test() {
                let name = concat!(stringify!($module), "::", stringify!($test));
                let suite = || crossover_tests::conformance::$test($target);
                crossover_tests::mpi::ranks(name, $ranks, suite);
            })+
        }
    };
}

suite! {
    one_shot => "mpi/one_shot",
    two_shot => "mpi/two_shot": {
        every_op_dtype_and_reduce_op: 3,
        sizes_around_every_edge: 2,
        every_world: 16,
        misaligned_buffers: 3,
        in_place: 4,
        counts_per_rank: 3,
        copies_keep_every_bit: 2,
        order_of_addition: 8,
        input_is_free_on_return: 3,
        mixed_calls_with_lagging_ranks: 4,
        two_threads_on_one_group: 2,
        empty_calls_advance_together: 3,
        different_calls_end_alike_on_all_ranks: 4,
        nonsense_is_refused_and_harmless: 2,
        counters_and_explain_tell_what_ran: 2,
        an_abort_ends_every_wait: 3,
        a_dropped_rank_is_named: 3,
    }
}

/// What tests with ranks of a launcher stand on: a rank that fails, that crashes when its test has passed, or
/// that never was fails the job.
#[test]
fn how_ranks_end_is_the_verdict() {
    const NAME: &str = "how_ranks_end_is_the_verdict";
    const HOW: &str = "TESTS_OF_MPI_END";
    fn crash(_: c_int) {
        std::process::abort();
    }
    if mpi::folder().is_some() {
        let how = std::env::var(HOW).expect("the job says it");
        let is_second = std::env::var("PMI_RANK").as_deref() == Ok("1");
        assert!(!is_second || how != "fails", "as it was asked to");
        if is_second && how == "crashes" {
            exit::before_exit(crash).expect("there is room for a handler");
        }
        return;
    }
    let Some(library) = mpi::library() else { return };
    let verdict = |how: &str, count: u32| {
        let folder = tempfile::tempdir().expect("a folder to meet in");
        let ended = Job::new(&library, folder.path(), NAME).env(HOW, how).run(&["-n", "2"]);
        ended.verdict(count)
    };
    assert_eq!(verdict("passes", 2), Ok(()));
    for (how, count, wrong) in [
        ("fails", 2, "[(1, Some(101))]"),
        ("crashes", 2, "[(1, Some(134))]"),
        ("passes", 3, "[(2, None)]"),
    ] {
        let why = verdict(how, count).expect_err(how);
        assert!(why.contains(&format!("did not end with 0: {wrong}")), "{how}: {why}");
    }
}

/// A rank that lives and does not come is named when the deadline has passed, and not before.
#[test]
fn a_late_rank_is_named() {
    mpi::ranks("a_late_rank_is_named", 3, || {
        let deadline = Duration::from_secs(1);
        groups::run(3, &Plan::forcing("mpi").deadline(deadline), |comm| {
            comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum).expect("all are here");
            let start = Instant::now();
            if comm.rank() == 0 {
                std::thread::sleep(deadline * 3);
                let late = comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum);
                assert!(late.is_err(), "the others have given up: {late:?}");
                return;
            }
            let error = comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum).expect_err("late");
            assert!(error.to_string().contains("still waiting for rank 0 after 1."), "{error}");
            // The first to give up tells the other, which may have waited a little less.
            let waited = start.elapsed();
            assert!(waited > deadline / 2 && waited < deadline * 20, "{waited:?}");
        });
    });
}

/// A rank whose process ends in the middle of a call is named at once, whatever the deadline.
#[test]
fn a_dead_rank_is_named() {
    const NAME: &str = "a_dead_rank_is_named";
    if mpi::taken() {
        groups::run(3, &Plan::forcing("mpi"), |comm| {
            // More than a message: peers are in a collective of MPI's when the rank is gone.
            let mut data = vec![1f32; 1 << 20];
            for _ in 0..3 {
                comm.all_reduce_in_place(&mut data, ReduceOp::Sum).expect("all are here");
            }
            if comm.rank() == 2 {
                std::process::abort();
            }
            let start = Instant::now();
            let error = comm.all_reduce_in_place(&mut data, ReduceOp::Sum).expect_err("dead");
            let told = mpi::folder().expect("a rank has one").join(format!("told-{}", comm.rank()));
            std::fs::write(told, format!("{:?} {error}", start.elapsed())).expect("it is told");
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        });
        return;
    }
    let Some(library) = mpi::library() else { return };
    let folder = tempfile::tempdir().expect("a folder to meet in");
    let ended = Job::new(&library, folder.path(), NAME).outlived().run(&["-n", "3"]);
    for rank in [0, 1] {
        let told = std::fs::read_to_string(folder.path().join(format!("told-{rank}")));
        let told = told.unwrap_or_else(|_| panic!("rank {rank} has told nothing: {ended:#?}"));
        assert!(told.contains("rank 2 was lost: its process ended"), "{told}");
    }
}

/// An engine that stops everything that it knows aborts groups that it has closed, and MPI ends as it should.
#[test]
fn an_abort_after_the_close_leaves_mpi_its_end() {
    const NAME: &str = "an_abort_after_the_close_leaves_mpi_its_end";
    /// After what the backend does when the process ends, which was registered later.
    fn tell_the_end(_: c_int) {
        // SAFETY: the name of a library that is loaded already, and nothing is run.
        let library = unsafe { libloading::Library::new("libmpi_abi.so.1") }.expect("it is loaded");
        let mut has_ended: c_int = 0;
        // SAFETY: the standard's signature; it may be called at any time, with a place for the answer.
        unsafe {
            let ask = library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"MPI_Finalized");
            ask.expect("every library has it")(&raw mut has_ended);
        }
        let (folder, rank) = (mpi::folder().expect("a rank has one"), std::env::var("PMI_RANK"));
        let told = folder.join(format!("ended-{}", rank.expect("the launcher tells it")));
        std::fs::write(told, has_ended.to_string()).expect("it is told");
    }
    if mpi::folder().is_some() {
        exit::before_exit(tell_the_end).expect("there is room for a handler");
        mpi::taken();
        groups::run(2, &Plan::forcing("mpi"), |comm| {
            comm.all_reduce_in_place(&mut [1f32; 8], ReduceOp::Sum).expect("all are here");
            comm.close().expect("all close");
            comm.abort_handle().abort("the engine stops");
        });
        return;
    }
    let Some(library) = mpi::library() else { return };
    let folder = tempfile::tempdir().expect("a folder to meet in");
    let ended = Job::new(&library, folder.path(), NAME).run(&["-n", "2"]);
    for rank in [0, 1] {
        let told = std::fs::read_to_string(folder.path().join(format!("ended-{rank}")));
        assert_eq!(told.ok().as_deref(), Some("1"), "rank {rank} did not end MPI: {ended:#?}");
    }
}

/// Two groups of the same ranks, each with a thread of its own.
#[test]
fn groups_do_not_meet_each_other() {
    mpi::ranks("groups_do_not_meet_each_other", 3, || {
        let calls = |comm: &Communicator, first: u64| {
            for seed in first..first + 60 {
                Case::new(Op::AllReduce, Dtype::I32, 1 + (seed as usize * 7919) % 9000, seed)
                    .check(comm);
            }
        };
        groups::run(3, &Plan::forcing("mpi/two_shot"), |one| {
            groups::run(3, &Plan::forcing("mpi/one_shot"), |other| {
                std::thread::scope(|scope| {
                    scope.spawn(|| calls(one, 0));
                    scope.spawn(|| calls(other, 1000));
                });
                other.close().expect("all close");
            });
            one.close().expect("all close");
        });
    });
}

/// Two threads make and close a group each, and which of them is first is not the same on all ranks.
#[test]
fn groups_are_made_in_any_order() {
    mpi::ranks("groups_are_made_in_any_order", 3, || {
        let rank = std::env::var("PMI_RANK").expect("the launcher tells ranks their number");
        let (rank, folder) = (rank.parse::<u32>().expect("a number"), mpi::folder());
        let folder = folder.expect("a rank has one");
        let make = |round: u32, name: u32| {
            let is_late = name == (rank + round) % 2;
            std::thread::sleep(Duration::from_millis(if is_late { 2 } else { 0 }));
            let place = Place::Unix(folder.join(format!("round-{round}-{name}")));
            let launch = Launch::new(rank, 3).named("tests", name).at(place);
            let boot = connect(&launch, &Options::default()).expect("the ranks meet");
            let plan = Plan::forcing("mpi");
            let (policy, settings) = (&plan.policy, &plan.settings);
            let report = groups::report_of(rank);
            let group = Communicator::form(&*boot, &plan.registry, policy, report, settings);
            let group = group.expect("the group forms");
            Case::new(Op::AllReduce, Dtype::I32, 500, u64::from(name)).check(&group);
            group.close().expect("all close");
        };
        for round in 0..20 {
            std::thread::scope(|scope| {
                scope.spawn(|| make(round, 0));
                scope.spawn(|| make(round, 1));
            });
        }
    });
}

/// Ranks that no launcher of MPI has started, here threads of one process, are told which.
#[test]
fn ranks_need_a_launcher() {
    let Some(library) = mpi::library() else { return };
    let library = library.join("lib/libmpi_abi.so.1");
    let why = refused(&library.display().to_string());
    assert!(why.contains("rank 0 is in a world of 1 by MPI, and the group has 2"), "{why}");
    assert!(why.contains("mpiexec -n"), "{why}");
}

/// Without a library the group says what was tried.
#[test]
fn a_missing_library_is_told() {
    let why = refused("/nowhere/libmpi_abi.so.1");
    assert!(why.contains("/nowhere/libmpi_abi.so.1") && why.contains("mpi.library"), "{why}");
}

/// Why two threads, on two nodes by their reports, cannot have backend `mpi`.
fn refused(library: &str) -> String {
    let plan = Plan::forcing("mpi").set("mpi.library", library);
    let errors = groups::on_channels(2, Duration::from_secs(60), |boot| {
        let report = RankReport { node: format!("node {}", boot.rank()), ..groups::report() };
        let formed = Communicator::form(boot, &plan.registry, &plan.policy, report, &plan.settings);
        formed.expect_err("no group forms").to_string()
    });
    assert_eq!(errors[0], errors[1]);
    errors[0].clone()
}

/// The shipped policy has MPI serve a group on two hosts, which are two network namespaces.
#[test]
fn two_hosts() {
    const NAME: &str = "two_hosts";
    if mpi::folder().is_some() {
        return hosts::rank();
    }
    let Some(library) = mpi::library() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    match hosts::Hosts::new(folder.path()) {
        Ok(hosts) => hosts.run(&library, folder.path(), NAME),
        Err(why) => tell(&format!("skipped: two network namespaces cannot be had: {why}")),
    }
}
