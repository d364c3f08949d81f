//! Right results: scenarios of several calls, whose kinds, sizes and places are drawn.

use std::time::Duration;

use crossover_core::call::{Dtype, Op, ReduceOp};
use crossover_kernel_emulation::compile::common_kernels;
use crossover_kernel_emulation::scenario::{Scenario, Verdict};
use crossover_tests::data::{Rng, Values};

use crate::call::{Call, Way, add_back_to_back, add_given_up, piece};
use crate::common::image;
use crate::group::{Group, ROOM, Setup};

/// What serves which collective.
pub(crate) const KINDS: [(Op, Way); 21] = [
    (Op::AllReduce, Way::OneShotPull),
    (Op::AllReduce, Way::OneShotPullRow),
    (Op::AllReduce, Way::OneShotPush),
    (Op::AllReduce, Way::TwoShotPull),
    (Op::AllReduce, Way::TwoShotPullRow),
    (Op::AllReduce, Way::TwoShotPullRows),
    (Op::AllReduce, Way::TwoShotPush),
    (Op::AllReduce, Way::Lamport),
    (Op::AllGather, Way::Pull),
    (Op::AllGather, Way::PullRow),
    (Op::AllGather, Way::Push),
    (Op::AllGather, Way::Lamport),
    (Op::ReduceScatter, Way::Pull),
    (Op::ReduceScatter, Way::PullRow),
    (Op::ReduceScatter, Way::Push),
    (Op::Broadcast, Way::Pull),
    (Op::Broadcast, Way::PullRow),
    (Op::Broadcast, Way::Push),
    (Op::AllToAll, Way::Pull),
    (Op::AllToAll, Way::PullRow),
    (Op::AllToAll, Way::Push),
];

/// A call of this kind, whose rest is drawn.
pub(crate) fn draw(kind: (Op, Way), setup: &Setup, early: bool, rng: &mut Rng) -> Call {
    let (world, (op, way)) = (setup.world, kind);
    let floats = [Dtype::F32, Dtype::F16, Dtype::Bf16];
    let copied = [Dtype::U8, Dtype::F16, Dtype::F32, Dtype::F64, Dtype::F8E4M3];
    let dtype = match op.reduces() || way == Way::Lamport {
        true => floats[rng.below(3) as usize],
        false => copied[rng.below(5) as usize],
    };
    let reduce_op = match rng.below(3) {
        0 => ReduceOp::ALL[rng.below(5) as usize],
        _ => ReduceOp::Sum,
    };
    // Many sizes are odd, some fill the room to the last byte or take several pieces.
    let room = match way {
        Way::Push | Way::OneShotPush | Way::TwoShotPush => ROOM.push,
        Way::Lamport => ROOM.lamport,
        _ if matches!(op, Op::AllReduce) => ROOM.push,
        // Several pieces.
        _ => piece(op, world) * 5 / 2,
    };
    let most = room as usize / dtype.size();
    let count = match rng.below(8) {
        0 => 1,
        1 => most,
        2..=4 => 1 + rng.below(most as u64) as usize,
        _ => 1 + rng.below(40) as usize,
    };
    // A kernel that reads inputs where they are does not write there; of those in place these two would.
    let row = way.reads_row() && (way == Way::OneShotPullRow || op == Op::AllToAll);
    Call {
        op,
        way,
        dtype,
        reduce_op,
        count: count.min(most),
        ragged: matches!(op, Op::AllGather | Op::ReduceScatter)
            && way != Way::Lamport
            && rng.below(3) == 0,
        in_place: !row && rng.below(3) == 0,
        offset: if rng.below(3) == 0 { dtype.size() as u64 * rng.below(4) } else { 0 },
        any: rng.below(3) == 0,
        plain: rng.below(3) == 0,
        early,
        blocks: 1 + rng.below(setup.blocks.into()) as u32,
        values: match op.reduces() {
            true => [Values::Rough, Values::Bits][rng.below(2) as usize],
            false => Values::Bits,
        },
    }
}

/// Six calls, of one kind or of kinds that are drawn.
pub(crate) fn scenario(mut setup: Setup, kind: Option<(Op, Way)>) -> Scenario {
    let world = setup.world;
    let mut rng = Rng::new(setup.seed, world as u32);
    setup.blocks = 1 + rng.below(3) as u32;
    setup.threads = [16, 24, 33][rng.below(3) as usize];
    // Numbers of calls around which flags wrap.
    setup.epoch = match rng.below(2) {
        0 => 1 + rng.below(5),
        _ => (1 << 32) - 1 - rng.below(4),
    };
    let early = rng.below(2) == 0;
    let calls: Vec<Call> = (0..6)
        .map(|_| {
            let kind = kind.unwrap_or_else(|| KINDS[rng.below(KINDS.len() as u64) as usize]);
            draw(kind, &setup, early, &mut rng)
        })
        .collect();
    let delayed = rng.below(world as u64 + 1) as usize;
    let mut group = Group::new(setup);
    if early || rng.below(2) == 0 {
        add_back_to_back(&calls, &mut group);
    } else {
        (calls.iter().zip(0..)).for_each(|(call, number)| call.add(&mut group, number));
    }
    let mut scenario = group.finish();
    scenario.delayed = (delayed < world).then_some((delayed, Duration::from_micros(500)));
    scenario
}

/// Places full of lines that bear the flag of a call that is to come, as lines of 2^32 calls ago do; and
/// calls that are so small that they overwrite hardly any of them, until one needs all places. After every
/// second of them there is a call of another way, if one is given.
pub(crate) fn stale_lines(mut setup: Setup, way: Way, between: Option<Way>) -> Scenario {
    const SMALL: u32 = 14;
    setup.epoch = 9;
    setup.threads = 32;
    setup.stale_flag = setup.epoch as u32 + SMALL;
    let call = Call {
        op: Op::AllReduce,
        way,
        dtype: Dtype::F32,
        reduce_op: ReduceOp::Sum,
        count: 1,
        ragged: false,
        in_place: false,
        offset: 0,
        any: false,
        plain: false,
        early: false,
        blocks: setup.blocks,
        values: Values::Rough,
    };
    let mut calls = Vec::new();
    for nth in 0..SMALL {
        calls.push(call);
        let other = between.filter(|_| nth % 2 == 1);
        calls.extend(other.map(|way| Call { way, ..call }));
    }
    calls.push(Call { count: ROOM.push as usize / 4, ..call });
    let mut group = Group::new(setup);
    add_back_to_back(&calls, &mut group);
    let mut scenario = group.finish();
    scenario.delayed = Some((0, Duration::from_millis(2)));
    scenario
}

fn check(kind: Option<(Op, Way)>, seeds: u64) {
    let kernels = common_kernels().expect("the sources can be listed");
    let Some(image) = image(&kernels, &[]) else { return };
    // Of more than eight ranks a thread holds a second group's values.
    for (world, seeds) in (2..=8).map(|world| (world, seeds)).chain([(9, 1), (16, 1)]) {
        for seed in 0..seeds {
            let outcome = scenario(Setup::new(world, seed), kind).play(&image);
            let report = outcome.report;
            assert_eq!(
                outcome.verdict,
                Verdict::Done,
                "{kind:?} world {world} seed {seed}: {report}"
            );
        }
    }
}

macro_rules! suite {
    ($($name:ident: $op:ident $way:ident,)*) => {$(
        #[test]
        fn $name() {
            check(Some((Op::$op, Way::$way)), 3);
        }
    )*};
}

suite! {
    one_shot_pull: AllReduce OneShotPull,
    one_shot_pull_where_inputs_are: AllReduce OneShotPullRow,
    one_shot_push: AllReduce OneShotPush,
    two_shot_pull: AllReduce TwoShotPull,
    two_shot_pull_where_inputs_are: AllReduce TwoShotPullRow,
    two_shot_pull_where_tensors_are: AllReduce TwoShotPullRows,
    two_shot_push: AllReduce TwoShotPush,
    lamport: AllReduce Lamport,
    all_gather_pull: AllGather Pull,
    all_gather_pull_where_inputs_are: AllGather PullRow,
    all_gather_push: AllGather Push,
    all_gather_lamport: AllGather Lamport,
    reduce_scatter_pull: ReduceScatter Pull,
    reduce_scatter_pull_where_inputs_are: ReduceScatter PullRow,
    reduce_scatter_push: ReduceScatter Push,
    broadcast_pull: Broadcast Pull,
    broadcast_pull_where_inputs_are: Broadcast PullRow,
    broadcast_push: Broadcast Push,
    all_to_all_pull: AllToAll Pull,
    all_to_all_pull_where_inputs_are: AllToAll PullRow,
    all_to_all_push: AllToAll Push,
}

#[test]
fn calls_of_all_kinds_mixed() {
    check(None, 5);
}

#[test]
fn flags_of_long_ago_are_scrubbed_before_they_come_again() {
    let kernels = common_kernels().expect("the sources can be listed");
    let Some(image) = image(&kernels, &[]) else { return };
    for way in [Way::OneShotPush, Way::TwoShotPush] {
        for between in [None, Some(Way::OneShotPull), Some(Way::TwoShotPull)] {
            let outcome = stale_lines(Setup::new(3, 1), way, between).play(&image);
            assert_eq!(outcome.verdict, Verdict::Done, "{way:?} {between:?}: {}", outcome.report);
        }
    }
}

/// A peer that has not begun a call may still use what the call is to write.
#[test]
fn who_gives_up_writes_nobody_elses_output() {
    let kernels = common_kernels().expect("the sources can be listed");
    let Some(image) = image(&kernels, &[]) else { return };
    for kind in KINDS {
        let mut group = Group::new(Setup::new(3, 1));
        let mut rng = Rng::new(7, 3);
        let call = Call { in_place: false, ..draw(kind, &group.setup, false, &mut rng) };
        add_given_up(&call, &mut group);
        let outcome = group.scenario.play(&image);
        assert_eq!(outcome.verdict, Verdict::Done, "{kind:?}: {}", outcome.report);
    }
}
