//! The setting `check = "args"`: ranks compare each call before it starts, so that a mistake is one
//! sentence on every rank, whatever the backend can see.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crossover_core::bootstrap::Bootstrap;
use crossover_core::call::{CallBuffers, CallSig, Dtype, Op, ReduceOp, Split};
use crossover_core::communicator::{CallError, Communicator};
use crossover_core::form::FormError;
use crossover_core::settings::Check;
use crossover_core::verdict::Verdict;
use crossover_tests::groups::{Plan, report};

/// Runs `body` on every rank of a group that compares its calls, `check` of each rank's own.
fn ranks<R: Send>(
    world: u32,
    check: impl Fn(u32) -> Check + Sync,
    body: impl Fn(Result<Communicator, FormError>) -> R + Sync,
) -> Vec<R> {
    let channels = crossover_bootstrap::threads(world, Duration::from_secs(20));
    std::thread::scope(|scope| {
        let (check, body) = (&check, &body);
        let ranks = channels.into_iter().map(|channel| {
            scope.spawn(move || {
                let channel: Arc<dyn Bootstrap> = Arc::new(channel);
                let mut plan = Plan::forcing("host");
                plan.settings.check = check(channel.rank());
                let (registry, settings) = (&plan.registry, &plan.settings);
                let formed =
                    Communicator::form(&*channel, registry, &plan.policy, report(), settings);
                body(formed.map(|group| group.with_channel(channel)))
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

const ROOM: usize = 4096;

/// Makes a call with buffers that have room for it.
fn make(group: &Communicator, call: &CallSig<'_>) -> Result<(), CallError> {
    let (input, mut output) = (vec![1u8; ROOM], vec![0u8; 4 * ROOM]);
    let buffers = CallBuffers { input: input.as_ptr(), output: output.as_mut_ptr(), stream: 0 };
    // SAFETY: no call of this test has more than ROOM bytes a rank, and worlds have four ranks.
    unsafe { group.run(call, &buffers) }
}

#[test]
fn a_call_that_differs_is_named_on_every_rank_by_its_first_difference() {
    let base = |group: &Communicator| group.signature::<f32>(Op::AllReduce, 60);
    type Change = fn(CallSig<'static>) -> CallSig<'static>;
    let changes: [(Change, &str); 6] = [
        (|c| CallSig { count: 64, ..c }, "rank 2 has count 64, ranks 0, 1 and 3 have 60"),
        (|c| CallSig { dtype: Dtype::F16, ..c }, "rank 2 has dtype f16, ranks 0, 1 and 3 have f32"),
        (|c| CallSig { op: Op::AllGather, ..c }, "rank 2 has op all_gather, ranks 0, 1 and 3 have"),
        (|c| CallSig { reduce_op: ReduceOp::Max, ..c }, "rank 2 has reduce op max"),
        (|c| CallSig { root: 9, op: Op::Broadcast, ..c }, "rank 2 cannot make its call: broadcast"),
        (
            |c| CallSig { op: Op::AllGather, split: Split::PerRank(&[1, 2]), ..c },
            "rank 2 cannot make its call: all_gather",
        ),
    ];
    for (change, want) in changes {
        let said = ranks(
            4,
            |_| Check::Args,
            |group| {
                let group = group.expect("the group forms");
                make(&group, &base(&group)).expect("all make the same");
                let call = if group.rank() == 2 { change(base(&group)) } else { base(&group) };
                let error = make(&group, &call).expect_err("one differs");
                let after = make(&group, &base(&group)).expect_err("the group has ended");
                assert!(matches!(after, CallError::Poisoned(_)), "{after}");
                // Nothing was started: only the first call ever was.
                assert_eq!(group.counters().iter().map(|count| count.calls).sum::<u64>(), 1);
                error.to_string()
            },
        );
        assert!(said.iter().all(|e| *e == said[0]), "{said:#?}");
        let names =
            said[0].contains("call 2: ranks made different calls") && said[0].contains(want);
        assert!(names, "{want}: {}", said[0]);
    }
}

#[test]
fn counts_per_rank_are_compared_one_by_one() {
    let said = ranks(
        2,
        |_| Check::Args,
        |group| {
            let group = group.expect("the group forms");
            let counts: &[usize] = if group.rank() == 0 { &[3, 4] } else { &[4, 3] };
            let call = group.signature::<f32>(Op::AllGather, 4);
            let call = CallSig { split: Split::PerRank(counts), ..call };
            make(&group, &call).expect_err("they differ").to_string()
        },
    );
    assert!(
        said.iter().all(|e| e.contains("counts per rank [3, 4], rank 1 has [4, 3]")),
        "{said:?}"
    );
}

#[test]
fn the_same_mistake_on_all_ranks_leaves_the_group_usable() {
    ranks(
        2,
        |_| Check::Args,
        |group| {
            let group = group.expect("the group forms");
            let call = group.signature::<f32>(Op::ReduceScatter, 3);
            let error = make(&group, &call).expect_err("3 is no multiple of 2");
            assert!(matches!(error, CallError::Invalid { .. }), "{error}");
            make(&group, &group.signature::<f32>(Op::AllReduce, 3)).expect("the group is well");
        },
    );
}

/// What a rank that is told to does wrong, and what is said of it.
type Wrong = fn(&Communicator, bool) -> Result<(), CallError>;

/// Every op with slices, of which one has an element too many where that is asked for.
const SLICES: [(Wrong, &str); 8] = [
    (
        |group, wrong| group.all_reduce(&[1f32; 4], &mut vec![0.; few(4, wrong)], ReduceOp::Sum),
        "all_reduce cannot be run: the output has 5 elements, not 4",
    ),
    (
        |group, wrong| group.all_gather(&[1u8; 3], &mut vec![0; few(3 * world(group), wrong)]),
        "all_gather cannot be run: the output has",
    ),
    (
        |group, wrong| {
            let counts = vec![2; world(group)];
            group.all_gather_v(&vec![1i32; few(2, wrong)], &counts, &mut vec![0; 2 * world(group)])
        },
        "all_gather cannot be run: the input has 3 elements, not 2",
    ),
    (
        |group, wrong| {
            let counts = vec![2; few(world(group), wrong)];
            group.all_gather_v(&[1i32; 2], &counts, &mut vec![0; 2 * world(group)])
        },
        "counts for a group of",
    ),
    (
        |group, wrong| {
            let input = vec![1f64; 2 * world(group)];
            group.reduce_scatter(&input, &mut vec![0.; few(2, wrong)], ReduceOp::Max)
        },
        "reduce_scatter cannot be run: the input has",
    ),
    (
        |group, wrong| {
            let (counts, input) = (vec![2; world(group)], vec![1u64; 2 * world(group)]);
            let output = &mut vec![0; few(2, wrong)];
            group.reduce_scatter_v(&input, &counts, output, ReduceOp::Sum)
        },
        "reduce_scatter cannot be run: the output has 3 elements, not 2",
    ),
    (
        |group, wrong| group.broadcast(&mut [0i8; 6], if wrong { 77 } else { 0 }),
        "broadcast cannot be run: root 77 is not a rank",
    ),
    (
        |group, wrong| {
            let input = vec![1u32; 2 * world(group)];
            group.all_to_all(&input, &mut vec![0; few(2 * world(group), wrong)])
        },
        "all_to_all cannot be run: the output has",
    ),
];

fn world(group: &Communicator) -> usize {
    group.world() as usize
}

fn few(n: usize, wrong: bool) -> usize {
    n + usize::from(wrong)
}

#[test]
fn what_one_rank_alone_refuses_is_told_on_all_at_once() {
    for of in 2..=5 {
        for (call, want) in SLICES {
            let odd = of / 2;
            let begun = Instant::now();
            let said = ranks(
                of,
                |_| Check::Args,
                |group| {
                    let group = group.expect("the group forms");
                    call(&group, false).expect("all make the same");
                    let error = call(&group, group.rank() == odd).expect_err("one makes none");
                    let after = call(&group, false).expect_err("the group has ended");
                    assert!(matches!(after, CallError::Poisoned(_)), "{after}");
                    assert_eq!(group.counters().iter().map(|count| count.calls).sum::<u64>(), 1);
                    error.to_string()
                },
            );
            assert!(said.iter().all(|e| *e == said[0]), "{said:#?}");
            let who =
                format!("call 2: ranks made different calls: rank {odd} cannot make its call");
            assert!(said[0].contains(&who) && said[0].contains(want), "{want}: {}", said[0]);
            // An exchange has 20 s.
            assert!(begun.elapsed() < Duration::from_secs(10), "{want}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn what_all_ranks_refuse_leaves_the_group_usable() {
    for (call, want) in SLICES {
        ranks(
            3,
            |_| Check::Args,
            |group| {
                let group = group.expect("the group forms");
                let error = call(&group, true).expect_err("nobody can make it");
                assert!(matches!(error, CallError::Invalid { .. }), "{error}");
                assert!(error.to_string().contains(want), "{error}");
                call(&group, false).expect("the group is well");
            },
        );
    }
}

#[test]
fn a_place_that_is_null_is_told_on_all_ranks_where_data_belongs() {
    let null = |group: &Communicator, call: &CallSig<'_>, input, output| {
        let (mine, mut out) = (vec![1u8; ROOM], vec![0u8; 4 * ROOM]);
        let input = if input { std::ptr::null() } else { mine.as_ptr() };
        let output = if output { std::ptr::null_mut() } else { out.as_mut_ptr() };
        // SAFETY: what is not null has room; what is null is refused, or has no data.
        unsafe { group.run(call, &CallBuffers { input, output, stream: 0 }) }
    };
    let said = ranks(
        3,
        |_| Check::Args,
        |group| {
            let group = group.expect("the group forms");
            let me = group.rank();
            let send = group.signature::<f32>(Op::Broadcast, 8);
            null(&group, &send, me != 0, false).expect("only the root gives anything");
            let counts = &[3, 0, 2];
            let gather = group.signature::<f32>(Op::AllGather, 3);
            let gather = CallSig { split: Split::PerRank(counts), ..gather };
            null(&group, &gather, me == 1, false).expect("rank 1 gives nothing");
            let none = group.signature::<f32>(Op::AllReduce, 0);
            null(&group, &none, true, true).expect("there is no data");
            let reduce = group.signature::<f32>(Op::AllReduce, 5);
            null(&group, &reduce, false, me == 1).expect_err("null on one").to_string()
        },
    );
    let want = "call 4: ranks made different calls: rank 1 cannot make its call: all_reduce cannot be \
                run: the output is null, and 5 x f32 are to be moved";
    assert_eq!(said, [want; 3]);
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let said = ranks(
        3,
        |_| Check::Args,
        |group| {
            let group = group.expect("the group forms");
            let call = group.signature::<f32>(Op::AllReduce, 8);
            make(&group, &call).expect("all come");
            // The channel goes with it.
            (group.rank() != 1).then(|| make(&group, &call).expect_err("one is gone").to_string())
        },
    );
    for said in said.iter().flatten() {
        assert!(said.contains("rank 1 was lost") && said.contains("call 2"), "{said}");
    }
}

#[test]
fn whoever_waits_for_a_rank_that_was_ended_learns_at_once_what_ended_it() {
    let (step, how) = ("the watchdog".to_owned(), "frozen".to_owned());
    let lost = Verdict::Lost { step, seq: 1, rank: 2, how };
    let (begun, all_ended) = (Instant::now(), Barrier::new(3));
    let ends = ranks(
        3,
        |_| Check::Args,
        |group| {
            let group = group.expect("the group forms");
            let call = group.signature::<f32>(Op::AllReduce, 8);
            make(&group, &call).expect("all come");
            if group.rank() == 1 {
                // Rank 0 is at the comparison by then.
                std::thread::sleep(Duration::from_millis(100));
                group.abort_handle().end(&lost);
            }
            let error = (group.rank() != 2).then(|| make(&group, &call).expect_err("it has ended"));
            // Rank 2 lives, and does not come.
            all_ended.wait();
            error
        },
    );
    for error in ends.into_iter().flatten() {
        let CallError::Failed(error) = error else { panic!("{error}") };
        assert_eq!(error, lost.clone().into_error("", 0));
    }
    // An exchange has 20 s.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn ranks_that_do_not_all_compare_form_no_group() {
    let checks = |rank| if rank == 1 { Check::Off } else { Check::Args };
    for error in ranks(2, checks, |group| group.expect_err("they differ").to_string()) {
        assert!(error.contains("setting `check`: rank 0 has args, rank 1 has off"), "{error}");
    }
}

#[test]
fn a_group_without_a_control_plane_says_what_it_needs() {
    let mut plan = Plan::forcing("host");
    plan.settings.check = Check::Args;
    crossover_tests::groups::run(2, &plan, |group| {
        let call = group.signature::<f32>(Op::AllReduce, 8);
        let error = make(group, &call).expect_err("there is nothing to compare over").to_string();
        assert!(error.contains("with_channel()"), "{error}");
    });
}
