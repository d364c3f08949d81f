//! Device graphs, with a backend that registers what it is given: captures are compared between
//! ranks, committed everywhere or nowhere, and forgotten where they failed.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_core::backend::{
    Abort, Algorithm, Backend, Descriptor, EnqueueError, Ready, Session,
};
use crossover_core::bootstrap::Bootstrap;
use crossover_core::call::{CallBuffers, CallSig, Dtype, Mode, Modes, Op, ReduceOp};
use crossover_core::communicator::{CallError, CommitError, Communicator, Copier};
use crossover_core::eligibility::{Eligibility, Worlds};
use crossover_core::facts::{GroupFacts, RankReport};
use crossover_core::form::FormError;
use crossover_core::registry::{Registration, Registry};
use crossover_core::verdict::Verdict;
use crossover_tests::groups::{Plan, forcing, on_channels, report};

const ELIGIBILITY: Eligibility =
    Eligibility { worlds: Worlds::range(2, 16), ..Eligibility::EVERYTHING };

/// `only` takes graphs, `eager` does not.
const RECORDER: Descriptor = Descriptor {
    id: "recorder",
    version: "1",
    settings: &["fails", "panics", "swallows"],
    algorithms: &[
        Algorithm { name: "only", eligibility: ELIGIBILITY, params: &[] },
        Algorithm {
            name: "eager",
            eligibility: Eligibility { modes: Modes::of(&[Mode::Eager]), ..ELIGIBILITY },
            params: &[],
        },
    ],
};

struct Recorder;

impl Backend for Recorder {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        _facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let session = setup.step("open", Local::new(()), |here, ()| {
            let rank = here.rank();
            let named = |key: &str| here.settings().get(key) == Some(&rank.to_string());
            let session = Recording {
                prepared: Vec::new(),
                registered: 0,
                exchanged: Arc::default(),
                swallows: named("recorder.swallows"),
                panics: named("recorder.panics"),
            };
            Ok(Box::new(session) as Box<dyn Session>)
        })?;
        let capacity = setup.min("agree on room", Local::new(u64::MAX))?;
        Ok(Ready { session, capacity })
    }
}

/// Counts what it registers; writes into the output how often all ranks together have committed.
struct Recording {
    prepared: Vec<usize>,
    registered: u64,
    /// What all ranks have registered, by the commits that are done.
    exchanged: Arc<Mutex<Vec<u64>>>,
    swallows: bool,
    panics: bool,
}

impl Session for Recording {
    unsafe fn enqueue(
        &mut self,
        _: usize,
        _: &[u64],
        seq: u64,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
    ) -> Result<(), EnqueueError> {
        if call.mode == Mode::Graph {
            if !self.prepared.contains(&call.count) {
                let what = "the kernel `only` cannot be loaded".to_owned();
                return Err(EnqueueError::NotPrepared { seq, what });
            }
            self.registered += 1;
        }
        let sum: u64 = self.exchanged.lock().expect("no step panics").iter().sum();
        // SAFETY: every call of these tests gives room for one u64.
        unsafe { buffers.output.cast::<u64>().write_unaligned(sum) };
        Ok(())
    }

    fn prepare(&mut self, _: usize, _: &[u64], call: &CallSig<'_>) -> Result<(), EnqueueError> {
        self.prepared.push(call.count);
        Ok(())
    }

    fn commit<'g>(&mut self, setup: &mut Setup<'g>) -> Result<(), SetupError> {
        let mine = std::mem::take(&mut self.registered);
        let what = "register its buffers";
        let all = setup.exchange(what, Local::new(mine), |here, mine| {
            match here.settings().get("recorder.fails") == Some(&here.rank().to_string()) {
                true => Err(StepError::new("memory that cannot be exported")),
                false => Ok(mine),
            }
        });
        assert!(!self.panics, "out of luck after the last step");
        if self.swallows {
            return Ok(());
        }
        self.exchanged.lock().expect("no step panics").extend(all?.into_inner());
        Ok(())
    }

    fn discard(&mut self) {
        self.registered = 0;
    }

    fn abort_handle(&self) -> Arc<dyn Abort> {
        Arc::new(Ignore)
    }

    fn close(&mut self, _: u64) -> Result<(), EnqueueError> {
        Ok(())
    }
}

struct Ignore;

impl Abort for Ignore {
    fn abort(&self, _: &Verdict) {}
}

fn plan(target: &str) -> Plan {
    let entry = Registration { descriptor: &RECORDER, make: || Box::new(Recorder) };
    let registry = Registry::empty().with(entry).expect("well formed");
    Plan { registry, policy: forcing(target), ..Plan::forcing("host") }
}

/// Forms a group of threads and runs `body` on each rank, with its channel.
fn run<R: Send>(
    world: u32,
    plan: &Plan,
    body: impl Fn(&Communicator, &dyn Bootstrap) -> R + Sync,
) -> Vec<R> {
    on_channels(world, Duration::from_secs(30), |boot| {
        let Plan { registry, policy, settings, .. } = plan;
        let formed = Communicator::form(boot, registry, policy, report(), settings);
        body(&formed.expect("the group forms"), boot)
    })
}

fn call(count: usize, mode: Mode) -> CallSig<'static> {
    CallSig {
        op: Op::AllReduce,
        dtype: Dtype::U64,
        reduce_op: ReduceOp::Sum,
        count,
        mode,
        root: 0,
        split: crossover_core::call::Split::Even,
        contract: crossover_core::contract::Contract::DEFAULT,
    }
}

/// Makes a call; returns what the session wrote.
fn make(group: &Communicator, count: usize, mode: Mode) -> Result<u64, CallError> {
    let input = vec![7u64; count];
    let mut output = vec![0u64; count];
    let buffers =
        CallBuffers { input: input.as_ptr().cast(), output: output.as_mut_ptr().cast(), stream: 0 };
    // SAFETY: both vectors hold `count` elements and live through the call.
    unsafe { group.run(&call(count, mode), &buffers) }.map(|()| output[0])
}

fn prepare(group: &Communicator, counts: &[usize]) {
    let calls: Vec<_> = counts.iter().map(|count| call(*count, Mode::Graph)).collect();
    group.prepare(&calls).expect("prepared");
}

#[test]
fn what_was_captured_is_exchanged_at_each_commit_and_once() {
    let seen = run(3, &plan("recorder/only"), |group, boot| {
        prepare(group, &[1, 2]);
        make(group, 1, Mode::Graph).expect("a captured call");
        make(group, 1, Mode::Eager).expect("an eager call between");
        make(group, 2, Mode::Graph).expect("a captured call");
        group.commit_over(boot).expect("committed");
        let first = make(group, 1, Mode::Eager).expect("a call");
        make(group, 2, Mode::Graph).expect("a captured call");
        group.commit_over(boot).expect("committed");
        group.commit_over(boot).expect("nothing was captured");
        (first, make(group, 1, Mode::Eager).expect("a call"))
    });
    assert_eq!(seen, [(6, 9); 3]);
}

#[test]
fn ranks_that_captured_different_numbers_of_calls_all_learn_who_and_how_many() {
    let told = run(4, &plan("recorder/only"), |group, boot| {
        prepare(group, &[1]);
        for _ in 0..if group.rank() == 2 { 11 } else { 12 } {
            make(group, 1, Mode::Graph).expect("a captured call");
        }
        let refused = group.commit_over(boot).expect_err("the counts differ");
        let later = make(group, 1, Mode::Eager).expect_err("the group is poisoned");
        (refused.to_string(), later.to_string())
    });
    let why = "ranks captured different calls: rank 0 captured 12, rank 2 captured 11; captured \
               call 12 is all_reduce sum of 1 x u64 (graph) on rank 0 and none on rank 2";
    for (refused, later) in told {
        assert_eq!(refused, why);
        assert!(later.contains("a capture could not be committed: ranks captured"), "{later}");
    }
}

#[test]
fn as_many_but_other_calls_are_told_by_the_first_that_differs() {
    let told = run(2, &plan("recorder/only"), |group, boot| {
        prepare(group, &[1, 2, 3]);
        let counts = if group.rank() == 1 { [1, 3, 2] } else { [1, 2, 3] };
        for count in counts {
            make(group, count, Mode::Graph).expect("a captured call");
        }
        group.commit_over(boot).expect_err("the calls differ").to_string()
    });
    let why = "ranks captured different calls: rank 0 and rank 1 captured 3 each, and captured \
               call 2 is all_reduce sum of 2 x u64 (graph) on rank 0 and all_reduce sum of 3 x \
               u64 (graph) on rank 1";
    assert_eq!(told, [why; 2]);
}

#[test]
fn a_capture_that_failed_is_forgotten_and_another_one_made() {
    let seen = run(2, &plan("recorder/only"), |group, boot| {
        prepare(group, &[1]);
        // As many as each rank got to.
        for _ in 0..=group.rank() {
            make(group, 1, Mode::Graph).expect("a captured call");
        }
        group.discard();
        make(group, 1, Mode::Graph).expect("a captured call");
        group.commit_over(boot).expect("committed");
        make(group, 1, Mode::Eager).expect("a call")
    });
    assert_eq!(seen, [2; 2]);
}

#[test]
fn an_exchange_that_fails_on_one_rank_fails_on_all() {
    let manners = [
        ("fails", "rank 1 could not register its buffers: memory that cannot be exported"),
        ("panics", "rank 1 could not exchange what it registered: it panicked between two steps"),
    ];
    for (manner, why) in manners {
        let plan = plan("recorder/only").set(&format!("recorder.{manner}"), "1");
        let told = run(3, &plan, |group, boot| {
            let refused = group.commit_over(boot).expect_err("rank 1 fails");
            assert!(matches!(make(group, 1, Mode::Eager), Err(CallError::Poisoned(_))));
            refused.to_string()
        });
        assert_eq!(told, [why; 3], "{manner}");
    }
}

#[test]
fn a_backend_that_swallows_an_error_is_outvoted() {
    let plan = plan("recorder/only").set("recorder.fails", "0").set("recorder.swallows", "0");
    let told = run(2, &plan, |group, boot| {
        group.commit_over(boot).expect_err("rank 1 knows better").to_string()
    });
    assert_eq!(told, ["rank 0 could not register its buffers: memory that cannot be exported"; 2]);
}

#[test]
fn a_rank_that_cannot_go_on_comes_to_say_so() {
    let told = run(2, &plan("recorder/only"), |group, boot| {
        if group.rank() == 1 {
            make(group, 9, Mode::Graph).expect_err("nobody prepared it");
        }
        group.commit_over(boot).expect_err("rank 1 is poisoned").to_string()
    });
    let why = "rank 1 could not end its capture: the group is no longer usable since a call \
               failed: call 1: the kernel `only` cannot be loaded while a stream is captured: \
               call prepare() with this call before";
    assert_eq!(told, [why; 2]);
}

#[test]
fn only_what_can_serve_is_prepared() {
    run(2, &plan("recorder/eager"), |group, _| {
        let refused = group.prepare(&[call(1, Mode::Graph)]).expect_err("eager alone");
        assert!(matches!(refused, CallError::NothingEligible { .. }), "{refused}");
        let invalid = group.prepare(&[CallSig { root: 5, ..call(1, Mode::Eager) }]);
        assert!(matches!(invalid, Err(CallError::Invalid { .. })), "{invalid:?}");
        group.prepare(&[call(1, Mode::Eager)]).expect("it serves eager calls");
        make(group, 1, Mode::Eager).expect("the group is usable");
    });
}

#[test]
fn a_group_that_keeps_its_channel_needs_none() {
    let channels = crossover_bootstrap::threads(2, Duration::from_secs(30));
    let plan = plan("recorder/only");
    std::thread::scope(|scope| {
        for channel in channels {
            let plan = &plan;
            scope.spawn(move || {
                let channel: Arc<dyn Bootstrap> = Arc::new(channel);
                let Plan { registry, policy, settings, .. } = plan;
                let formed = Communicator::form(&*channel, registry, policy, report(), settings);
                let group = formed.expect("the group forms");
                assert_eq!(group.commit(), Err(CommitError::NoChannel));
                let group = group.with_channel(channel);
                prepare(&group, &[1]);
                make(&group, 1, Mode::Graph).expect("a captured call");
                group.commit().expect("committed");
                assert_eq!(make(&group, 1, Mode::Eager), Ok(2));
            });
        }
    });
}

/// Copies, and counts.
struct Counting(AtomicU64);

impl Copier for Counting {
    unsafe fn copy(&self, seq: u64, buffers: &CallBuffers, bytes: u64) -> Result<(), EnqueueError> {
        assert_eq!(self.0.fetch_add(1, SeqCst) + 1, seq);
        // SAFETY: the caller vouches for both buffers.
        unsafe { std::ptr::copy(buffers.input, buffers.output, bytes as usize) };
        Ok(())
    }
}

fn on_device(unit: &str) -> RankReport {
    RankReport { arch: "sm90".to_owned(), unit: unit.to_owned(), ..report() }
}

#[test]
fn a_group_of_one_on_a_device_copies_with_what_it_is_given() {
    let solo = crossover_bootstrap::Solo::new(Duration::from_secs(1));
    let Plan { registry, policy, settings, .. } = &plan("recorder/only");
    let form = || Communicator::form(&solo, registry, policy, on_device("GPU-1"), settings);
    let copier = Arc::new(Counting(AtomicU64::new(0)));
    let group = form().expect("the group forms").with_copier(Arc::clone(&copier) as _);
    assert_eq!(make(&group, 3, Mode::Graph), Ok(7));
    assert_eq!(make(&group, 3, Mode::Eager), Ok(7));
    assert_eq!(copier.0.load(SeqCst), 2);
    group.commit().expect("nobody to exchange with");

    let told = make(&form().expect("the group forms"), 3, Mode::Eager).expect_err("no copier");
    assert!(told.to_string().contains("sm90, whose memory the core cannot copy"), "{told}");
}

#[test]
fn ranks_share_a_device_only_where_all_allow_it() {
    let form = |allowed: [bool; 4]| {
        on_channels(4, Duration::from_secs(30), |boot| {
            let rank = boot.rank() as usize;
            let Plan { registry, policy, mut settings, .. } = plan("recorder/only");
            settings.backends.allow_shared_device = allowed[rank];
            let mine = on_device(["GPU-a", "GPU-b", "GPU-a", "GPU-a"][rank]);
            Communicator::form(boot, &registry, &policy, mine, &settings)
        })
    };
    for refused in form([false; 4]) {
        let refused = refused.expect_err("shared");
        assert!(matches!(refused, FormError::SharedDevice { .. }));
        let start = "ranks 0, 2 and 3 are all on GPU-a: give each rank a device of its own";
        assert!(refused.to_string().starts_with(start), "{refused}");
    }
    for refused in form([true, true, false, true]) {
        let why = "ranks disagree on the setting `allow_shared_device`: rank 0 has true, rank 2 \
                   has false";
        assert_eq!(refused.expect_err("not agreed").to_string(), why);
    }
    for formed in form([true; 4]) {
        assert_eq!(formed.expect("allowed").facts().ranks_per_unit(), 3);
    }
    run(2, &plan("recorder/only"), |group, _| {
        assert_eq!(group.facts().ranks_per_unit(), 1);
        assert!(group.facts().shared_units().is_empty());
    });
}
