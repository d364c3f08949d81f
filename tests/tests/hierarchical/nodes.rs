//! Groups whose ranks play to be on several nodes.

use std::time::Duration;

use crossover_core::communicator::Communicator;
use crossover_tests::device::{Rank, Stand, Target};
use crossover_tests::groups::{Plan, on_channels};

use crate::stage::{Library, plan};

/// The nodes of ranks: two of two, two of three and three of two; one after the other, by turns, and
/// in no order.
pub(crate) const ALL: [&[u32]; 5] =
    [&[0, 0, 1, 1], &[0, 1, 0, 1], &[0, 1, 1, 0, 1, 0], &[0, 0, 1, 1, 2, 2], &[2, 0, 1, 1, 0, 2]];

/// Two nodes of two ranks, by turns: neighbours are never on one node.
pub(crate) const FOUR: &[u32] = &[0, 1, 0, 1];

/// The algorithm.
pub(crate) fn target() -> Target {
    Target::parse("hierarchical")
}

/// A group on these nodes that has it and nothing else.
pub(crate) fn of(stand: &Stand, library: &Library, nodes: &[u32]) -> Plan {
    let plan = plan(stand, "hierarchical", &library.path);
    Plan { nodes: nodes.to_vec(), ..plan }
}

/// Runs `body` on every rank of such a group.
pub(crate) fn run(stand: &Stand, nodes: &[u32], body: impl Fn(&mut Rank<'_>) + Sync) {
    let library = Library::build(stand, &[]);
    stand.run(nodes.len() as u32, &of(stand, &library, nodes), body);
}

/// Why a group cannot form: the same sentence on every rank.
pub(crate) fn refusal(stand: &Stand, plan_of: impl Fn(u32) -> Plan + Sync) -> String {
    let world = plan_of(0).nodes.len() as u32;
    let errors = on_channels(world, Duration::from_secs(60), |boot| {
        let plan = plan_of(boot.rank());
        let report = plan.placed(boot.rank(), stand.report());
        let (registry, policy) = (&plan.registry, &plan.policy);
        let formed = Communicator::form(boot, registry, policy, report, &plan.settings);
        formed.err().map_or_else(|| "it forms".to_owned(), |e| e.to_string())
    });
    assert!(errors.iter().all(|e| *e == errors[0]), "ranks tell different stories: {errors:#?}");
    errors[0].clone()
}
