//! The setting `explain`: a group tells the bands of the ops that are asked for, and each decision
//! the first time it is taken.

mod log;

use std::time::Duration;

use crossover_core::call::{Dtype, Dtypes, Op, Ops, ReduceOp};
use crossover_core::communicator::Communicator;
use crossover_core::contract::Contract;
use crossover_core::policy::{ByteRange, Layer, Match, Origin, Policy, Rule};
use crossover_tests::groups::{Plan, forcing, on_channels, report};
use tracing::Level;

/// One shot for sums of f32 and bf16 up to 64 KiB; two shots for what is left.
fn policy() -> Policy {
    let base = forcing("host/two_shot").rules()[0].clone();
    let origin = |line| Origin { file: "mine.toml".to_owned(), line };
    let mut small = Rule {
        id: "small".to_owned(),
        layer: Layer::User,
        origin: origin(3),
        last: false,
        when: Match {
            op: Some(Ops::of(&[Op::AllReduce])),
            dtype: Some(Dtypes::of(&[Dtype::F32, Dtype::Bf16])),
            ..Match::default()
        },
        ..base.clone()
    };
    small.chain[0].algorithm = Some("one_shot".to_owned());
    small.chain[0].bytes = ByteRange { low: 0, high: Some(65_537) };
    let rest = Rule { id: "rest".to_owned(), origin: origin(8), ..small.clone() };
    let rest = Rule { when: Match::default(), chain: base.chain, ..rest };
    Policy::new(Contract::DEFAULT, vec![small, rest])
}

/// What each rank logs of decisions while it forms a group and makes some calls.
fn logged(world: u32, explain: Ops, levels: &'static [Level]) -> Vec<log::Lines> {
    on_channels(world, Duration::from_secs(60), |boot| {
        let mut plan = Plan { policy: policy(), ..Plan::forcing("host") };
        plan.settings.explain = explain;
        plan.settings.tag = "tp".to_owned();
        let work = || {
            let (registry, settings) = (&plan.registry, &plan.settings);
            let comm = Communicator::form(boot, registry, &plan.policy, report(), settings)
                .expect("the group forms");
            let (mut data, mut all) = (vec![1f32; 16_384], vec![0f32; 100 * world as usize]);
            for _ in 0..3 {
                let mut sum = |count| {
                    comm.all_reduce_in_place(&mut data[..count], ReduceOp::Sum).expect("it runs");
                };
                // 400 B and 508 B are in one bucket of sizes; 512 B is in the next.
                sum(100);
                sum(127);
                sum(128);
                sum(16_384);
                comm.all_gather(&[1f32; 100], &mut all).expect("it runs");
            }
        };
        let ((), lines) = log::kept(levels, work);
        lines.into_iter().filter(|line| line.contains(" crossover::explain: ")).collect()
    })
}

const FORMED: [&str; 3] = [
    "INFO crossover::explain: `tp`: all_reduce sum of f32, bf16 (eager): \
     host/one_shot up to 64KiB, then host/two_shot",
    "INFO crossover::explain: `tp`: all_reduce sum of f16, f64, i8, u8, i32, u32, i64, u64, \
     f8e4m3, f8e5m2 (eager): host/two_shot",
    "INFO crossover::explain: `tp`: all_reduce sum of any dtype (graph): nothing",
];

#[test]
fn rank_0_tells_bands_and_new_decisions_of_the_ops_that_are_asked_for() {
    let by = "by rule `small` of layer user at mine.toml:3";
    let told = "INFO crossover::explain: `tp`: all_reduce sum of";
    let mut want: Vec<String> = FORMED.map(str::to_owned).to_vec();
    want.extend([
        format!("{told} 100 x f32 (eager), 400 B: host/one_shot {by}"),
        format!("{told} 128 x f32 (eager), 512 B: host/one_shot {by}"),
        format!("{told} 16384 x f32 (eager), 65536 B: host/one_shot {by}"),
    ]);
    let lines = logged(2, Ops::of(&[Op::AllReduce]), &[Level::INFO]);
    assert_eq!(lines[0], want);
    assert_eq!(lines[1], log::Lines::new(), "what is the same on every rank is told once");
}

#[test]
fn other_decisions_are_told_to_those_who_debug() {
    let gathered = "DEBUG crossover::explain: `tp`: all_gather of 100 x f32 (eager), 400 B: \
                    host/two_shot by rule `rest` of layer user at mine.toml:8";
    let lines = logged(2, Ops::of(&[Op::AllReduce]), &[Level::DEBUG]);
    assert_eq!(lines[0], [gathered]);
    assert_eq!((lines[1].len(), lines[1][3].as_str()), (4, gathered));
    let nothing = logged(2, Ops::NONE, &[Level::ERROR, Level::WARN, Level::INFO]);
    assert_eq!(nothing, [log::Lines::new(), log::Lines::new()]);
}

#[test]
fn a_group_of_one_tells_that_it_copies() {
    let lines = logged(1, Ops::of(&[Op::AllGather]), &[Level::INFO]);
    assert_eq!(
        lines[0],
        [
            "INFO crossover::explain: `tp`: all_gather of any dtype (any mode): copy",
            "INFO crossover::explain: `tp`: all_gather of 100 x f32 (eager), 400 B: copy",
        ]
    );
}
