//! What cannot succeed ends, within its deadline, in a sentence that names who and why.

use std::time::{Duration, Instant};

use crossover_core::bootstrap::Bootstrap;
use crossover_core::call::{CallBuffers, Mode, Op, ReduceOp};
use crossover_core::communicator::{CallError, Communicator};
use crossover_device::error::DeviceError;
use crossover_device::graph::Graph;
use crossover_device::memory::Buffer;
use crossover_device::stream::Stream;
use crossover_tests::device::Stand;
use crossover_tests::groups::Plan;

use crate::stage::{Library, form, plan, refusal, tests_apart, willing};

/// How long ranks wait where one never comes.
pub(crate) const SOON: Duration = Duration::from_millis(1500);
/// Calls that a group makes before it is one, as the library counts them: four collectives, and a
/// send and a receive for each rank, of two sizes.
fn first_calls(world: u32) -> u32 {
    2 * (4 + 2 * world)
}

pub(crate) fn soon(stand: &Stand, library: &Library) -> Plan {
    // Not in windows: so that calls are counted.
    plan(stand, "nccl", &library.path).deadline(SOON).set("nccl.window", "0B")
}

/// A rank's tensor on the device, and its stream.
pub(crate) struct Tensor {
    memory: Buffer,
    stream: Stream,
}

impl Tensor {
    pub(crate) fn new(stand: &Stand) -> Tensor {
        let device = stand.open();
        let stream = Stream::new(&device).expect("a stream");
        Tensor { memory: Buffer::new(&device, 4096).expect("memory"), stream }
    }

    /// A sum in place.
    fn call(&self, comm: &Communicator) -> Result<(), CallError> {
        self.call_in(Mode::Eager, comm)
    }

    fn call_in(&self, mode: Mode, comm: &Communicator) -> Result<(), CallError> {
        let mut call = comm.signature::<f32>(Op::AllReduce, 64);
        (call.reduce_op, call.mode) = (ReduceOp::Sum, mode);
        let at = self.memory.address();
        let stream = self.stream.raw();
        let buffers = CallBuffers { input: at as *const u8, output: at as *mut u8, stream };
        // SAFETY: the memory has room, and lives until the stream is done.
        unsafe { comm.run(&call, &buffers) }
    }

    /// The sum, as a graph.
    pub(crate) fn capture(&self, boot: &dyn Bootstrap, comm: &Communicator) -> Graph {
        let captured = self.stream.capture(|| {
            self.call_in(Mode::Graph, comm).expect("it can be captured");
            Ok::<(), DeviceError>(())
        });
        comm.commit_over(boot).expect("as many on all ranks");
        captured.expect("a graph")
    }

    /// Waits for the call, and says whether it is right.
    fn finish(&self, comm: &Communicator) -> Result<(), CallError> {
        self.stream.synchronize().expect("what runs ends");
        comm.check()
    }
}

/// Makes one call after the group has formed, and tells how it ended.
fn outcomes(stand: &Stand, library: &Library, world: u32) -> Vec<String> {
    form(
        stand,
        world,
        |_| soon(stand, library),
        |boot, formed| {
            let comm = formed.expect("it forms");
            let tensor = Tensor::new(stand);
            boot.all_gather("formed", &[]).expect("all are here");
            let made = tensor.call(&comm).and_then(|()| tensor.finish(&comm));
            boot.all_gather("looked", &[]).expect("all are here");
            made.map_or_else(|e| e.to_string(), |()| "it is right".to_owned())
        },
    )
}

tests_apart! {
    fn a_rank_that_cannot_join_is_named_rather_than_those_that_wait(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("rank=1 init=fail"));
        let began = Instant::now();
        let why = refusal(stand, 3, |_| soon(stand, &library));
        let words = "got rank 1 could not join the communicator: ncclCommInitRankConfig failed: ";
        assert!(why.contains(words), "{why}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    fn a_rank_that_never_joins_hangs_nobody(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("rank=1 init=hang"));
        let began = Instant::now();
        let why = refusal(stand, 3, |_| soon(stand, &library));
        let words = "could not join the communicator: ncclCommInitRankConfig has not returned \
                     after 1.5s";
        assert!(why.contains(words), "{why}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    fn a_wrong_first_collective_is_seen_before_the_group_is_one(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        for (call, words) in [(1, "a first all_reduce of 64 x i32"), (10, "a first all_gather of")] {
            library.stand_in.fail(Some(&format!("rank=1 call={call} wrong")));
            let why = refusal(stand, 2, |_| soon(stand, &library));
            let start = format!("got rank 1 could not make its first calls: {words}");
            assert!(why.contains(&start) && why.contains("is wrong from element"), "{why}");
        }
    }

    fn a_first_collective_that_fails_or_hangs_ends_the_set_up(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        for (fails, words) in [
            ("rank=1 call=3 fail", "rank 1 could not make its first calls: a first reduce_scatter"),
            ("rank=1 call=2 async-error", "could not make its first calls: a first all_gather"),
            ("rank=1 call=4 hang", "could not make its first calls: a first broadcast is not done"),
        ] {
            library.stand_in.fail(Some(fails));
            let began = Instant::now();
            let why = refusal(stand, 2, |_| soon(stand, &library));
            assert!(why.contains(words), "{fails}: {why}");
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        }
    }

    fn an_error_of_the_library_is_told_to_all(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some(&format!("rank=1 call={} async-error", first_calls(3) + 1)));
        let told = outcomes(stand, &library, 3);
        assert!(told[1].contains("ncclCommGetAsyncError failed: "), "{told:#?}");
        for other in [&told[0], &told[2]] {
            assert!(other.contains("rank 1 aborted the group: "), "{told:#?}");
            assert!(other.contains("ncclCommGetAsyncError failed: "), "{told:#?}");
        }
    }

    fn a_call_that_the_library_refuses_ends_the_group_on_all(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some(&format!("rank=0 call={} fail", first_calls(2) + 1)));
        let told = outcomes(stand, &library, 2);
        assert!(told[0].contains("call 1: ncclAllReduce failed: "), "{told:#?}");
        assert!(told[1].contains("rank 0 aborted the group: "), "{told:#?}");
    }

    fn a_call_that_all_have_made_and_that_hangs_ends_after_ten_deadlines(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some(&format!("rank=1 call={} hang", first_calls(2) + 1)));
        let began = Instant::now();
        let told = outcomes(stand, &library, 2);
        let words = "every rank has made the call, and it is not done after 15.";
        assert!(told.iter().all(|text| text.contains(words)), "{told:#?}");
        assert!(told.iter().any(|text| text.contains("nccl, all_reduce, call 1: ")), "{told:#?}");
        assert!(began.elapsed() < 20 * SOON, "{:?}", began.elapsed());
    }

    fn a_call_that_all_have_made_is_not_late_behind_long_work(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some(&format!("call={} slow", first_calls(2) + 1)));
        let began = Instant::now();
        assert_eq!(outcomes(stand, &library, 2), ["it is right", "it is right"]);
        assert!(began.elapsed() > 2 * SOON, "{:?}", began.elapsed());
    }

    fn a_call_that_the_library_does_not_return_from_ends_with_the_deadline(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some(&format!("rank=0 call={} inside", first_calls(2) + 1)));
        let began = Instant::now();
        let told = form(stand, 2, |_| soon(stand, &library), |boot, formed| {
            let comm = formed.expect("it forms");
            // The other does not come.
            let made = (boot.rank() == 0).then(|| Tensor::new(stand).call(&comm));
            boot.all_gather("looked", &[]).expect("all are here");
            made.map(|made| made.map_err(|e| e.to_string()))
        });
        let why = told[0].clone().expect("it called").expect_err("nobody came");
        assert!(why.contains("nccl, all_reduce, call 1: still waiting for rank 1 "), "{why}");
        assert!(began.elapsed() < 8 * SOON, "{:?}", began.elapsed());
    }

    fn who_gives_up_a_first_call_first_is_not_taken_for_a_failure_of_the_others(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("abort=heard; rank=1 call=4 hang"));
        let why = refusal(stand, 2, |rank| soon(stand, &library).deadline(SOON * (1 + 2 * rank)));
        let words = "got rank 0 could not make its first calls: a first broadcast is not done \
                     after 1.5s";
        assert!(why.contains(words), "{why}");
    }

    fn a_library_that_draws_no_id_hangs_nobody(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("id=hang"));
        let began = Instant::now();
        let why = refusal(stand, 2, |_| soon(stand, &library));
        let words = "rank 0 could not draw the communicator's id: ncclGetUniqueId has not returned \
                     after 1.5s";
        assert!(why.contains(words), "{why}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    fn a_window_that_is_not_given_back_hangs_nobody(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("deregister=hang; rank=1 window=fail"));
        let began = Instant::now();
        let plan_of = |_| {
            let plan = plan(stand, "nccl", &library.path).deadline(SOON);
            willing(plan, &["nccl/symmetric", "nccl"])
        };
        form(stand, 2, plan_of, |_, formed| {
            let comm = formed.expect("it has the rest");
            let explained = comm.explain(&comm.signature::<f32>(Op::AllReduce, 64));
            assert_eq!(explained.chosen.expect("served").target, "nccl");
            comm.close().expect("all close");
        });
        assert!(began.elapsed() < 12 * SOON, "{:?}", began.elapsed());
    }

    fn an_abort_that_comes_before_a_close_leaves_it_nothing_to_close(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        // The watch is in the library most of the time: the close waits for it, and then the abort,
        // which is the watch's, comes in first.
        library.stand_in.fail(Some("rank=0 query=slow"));
        form(stand, 2, |_| plan(stand, "nccl", &library.path).set("nccl.window", "0B"), |boot, formed| {
            let comm = formed.expect("it forms");
            boot.all_gather("formed", &[]).expect("all are here");
            // By then the watch has begun to ask, and asks for 300 ms.
            std::thread::sleep(Duration::from_millis(100));
            if boot.rank() == 0 {
                let why = comm.close().expect_err("it is aborted").to_string();
                assert!(why.contains("rank 1 aborted the group: enough"), "{why}");
            } else {
                std::thread::sleep(Duration::from_millis(30));
                comm.abort_handle().abort("enough");
            }
            boot.all_gather("looked", &[]).expect("all are here");
        });
        let told = library.stand_in.told();
        assert!(!told.contains("finalize of no communicator"), "{told}");
    }

    fn a_group_that_cannot_be_closed_says_so_in_time(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("rank=1 finalize=hang"));
        let began = Instant::now();
        let told = form(stand, 2, |_| soon(stand, &library), |_, formed| {
            let comm = formed.expect("it forms");
            let closed = comm.close().map_err(|e| e.to_string());
            assert_eq!(comm.close(), Ok(()), "twice is once");
            closed
        });
        let why = told[1].as_ref().expect_err("it hangs");
        assert!(why.contains("nccl, close, call 0: still waiting for rank"), "{why}");
        assert!(began.elapsed() < 8 * SOON, "{:?}", began.elapsed());
    }

    fn a_group_closes_before_its_graphs_are_gone(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("finalize=held"));
        let began = Instant::now();
        form(stand, 2, |_| soon(stand, &library), |boot, formed| {
            let comm = formed.expect("it forms");
            let tensor = Tensor::new(stand);
            let graph = tensor.capture(boot, &comm);
            graph.replay(tensor.stream.raw()).expect("it can be replayed");
            tensor.finish(&comm).expect("it is right");
            assert_eq!(comm.close(), Ok(()), "the library waits for the graph, the engine does not");
            boot.all_gather("closed", &[]).expect("all are here");
        });
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        let destroyed = || library.stand_in.told().matches("destroy").count();
        assert_eq!(destroyed(), 0, "{}", library.stand_in.told());
        library.stand_in.fail(None);
        while destroyed() < 2 {
            assert!(began.elapsed() < 20 * SOON, "{}", library.stand_in.told());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!library.stand_in.told().contains("abort"), "{}", library.stand_in.told());
    }

    fn a_call_that_a_peer_left_out_is_not_taken_for_a_graph(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        let told = form(stand, 2, |_| soon(stand, &library), |boot, formed| {
            let comm = formed.expect("it forms");
            let tensor = Tensor::new(stand);
            let _graph = tensor.capture(boot, &comm);
            if boot.rank() == 1 {
                tensor.call(&comm).expect("it is enqueued");
            }
            boot.all_gather("enqueued", &[]).expect("all are here");
            let closed = comm.close().map_err(|e| e.to_string());
            boot.all_gather("closed", &[]).expect("all are here");
            closed
        });
        // Whoever is first tells both.
        for why in told {
            let why = why.expect_err("rank 0 has not made the call");
            assert!(why.contains("still waiting for rank"), "{why}");
        }
    }

    fn a_peer_that_does_not_close_is_late_whatever_was_captured(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        form(stand, 2, |_| soon(stand, &library), |boot, formed| {
            let comm = formed.expect("it forms");
            let tensor = Tensor::new(stand);
            let _graph = tensor.capture(boot, &comm);
            if boot.rank() == 0 {
                let why = comm.close().expect_err("rank 1 does not come").to_string();
                assert!(why.contains("still waiting for rank 1"), "{why}");
            }
            boot.all_gather("closed", &[]).expect("all are here");
        });
    }

    fn closing_twice_and_aborting_what_is_closed_do_nothing(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        form(stand, 2, |_| soon(stand, &library), |_, formed| {
            let comm = formed.expect("it forms");
            let tensor = Tensor::new(stand);
            tensor.call(&comm).expect("it can be made");
            tensor.finish(&comm).expect("it is right");
            let abort = comm.abort_handle();
            assert_eq!(comm.close(), Ok(()));
            assert_eq!(comm.close(), Ok(()));
            abort.abort("too late");
            assert!(matches!(tensor.call(&comm), Err(CallError::Closed)));
        });
        assert_eq!(library.stand_in.alive(), Default::default());
    }
}
