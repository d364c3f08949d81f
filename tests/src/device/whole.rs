//! A backend as a whole: all its algorithms in one group, and groups that come and go.

use crossover_core::call::Dtype;
use crossover_core::policy::{Basis, ByteRange, Candidate, Policy};

use super::stand::ANYTHING;
use super::{Case, Stand, Target};
use crate::data::{Rng, Values};
use crate::groups::{Plan, forcing};

/// Every algorithm, each at sizes of its own, in an order that is drawn: they share slots, barriers
/// and the number of the call.
pub fn algorithms_by_turns(stand: &Stand, targets: &[(Target, u64)]) {
    let mut rules = forcing(targets[0].0.name).rules().to_vec();
    // The last of an op takes what is above too: counts are rounded up to the number of ranks.
    let is_last = |nth: usize| {
        targets[nth + 1..].iter().all(|(later, _)| later.ops()[0] != targets[nth].0.ops()[0])
    };
    rules[0].chain = (targets.iter().enumerate())
        .map(|(nth, (target, high))| candidate(stand, target, (!is_last(nth)).then_some(*high)))
        .collect();
    let mut plan = Plan::forcing(targets[0].0.name);
    plan.policy = Policy::new(ANYTHING, rules);
    let plan = stand.settle(plan);
    for world in stand.worlds(&[2, 3, 4, 8]) {
        stand.run(world, &plan, |rank| {
            let mut shape = Rng::new(11, 0);
            for seed in 0..stand.scale(150, 1500) {
                let nth = shape.below(targets.len() as u64) as usize;
                let (target, high) = &targets[nth];
                let op = target.ops()[0];
                // Above those before it that take the op.
                let below = targets[..nth].iter().filter(|(t, _)| t.ops()[0] == op);
                let low = below.map(|(_, high)| *high).max().unwrap_or(1);
                let bytes = low + shape.below(high - low);
                let dtype = [Dtype::F32, Dtype::F16, Dtype::Bf16][shape.below(3) as usize];
                let count = (bytes as usize).div_ceil(dtype.size());
                let mut case = Case::new(target, op, dtype, count, seed);
                case.values = Values::Rough;
                case.in_place = shape.below(3) == 0;
                case.call.root = shape.below(16) as u32;
                case.check(rank);
            }
            let served = rank.comm().counters();
            for (target, _) in targets {
                assert!(served.iter().any(|line| line.target == target.name), "{}", target.name);
            }
        });
    }
}

fn candidate(stand: &Stand, target: &Target, high: Option<u64>) -> Candidate {
    let (backend, algorithm) = target.name.split_once('/').unwrap_or((target.name, ""));
    Candidate {
        backend: backend.to_owned(),
        algorithm: Some(algorithm.to_owned()),
        bytes: ByteRange { low: 0, high },
        basis: Basis::Input,
        optional: false,
        params: stand.params(target),
    }
}

/// Groups that are formed, used and closed leave nothing behind: no memory, no descriptor.
pub fn groups_come_and_go(stand: &Stand, target: &Target, groups: usize) {
    let once = || {
        for world in stand.worlds(&[2]) {
            stand.run(world, &stand.plan(target), |rank| {
                Case::new(target, target.ops()[0], Dtype::F32, 100, 1).check(rank);
            });
        }
    };
    // What a process keeps is there after the first few.
    (0..5).for_each(|_| once());
    let before = held();
    (0..groups).for_each(|_| once());
    let after = held();
    assert!(after.0 <= before.0 + 8, "descriptors: {} and then {}", before.0, after.0);
    assert!(after.1 <= before.1 + 8, "mapped files: {} and then {}", before.1, after.1);
}

/// A few groups, one after the other, between processes.
pub fn groups_come_and_go_between(stand: &Stand, target: &Target) {
    groups_come_and_go(stand, target, 10);
}

/// Open descriptors of this process, and mappings of files in memory, which emulated memory and the
/// board are.
fn held() -> (usize, usize) {
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    (descriptors, maps.lines().filter(|line| line.contains("/memfd:")).count())
}
