//! The proof: groups of threads of this process come about and run a collective, by every linked
//! backend that takes them. What they need is what a job of as many ranks needs.

use std::thread;
use std::time::Duration;

use crossover_bootstrap::threads;
use crossover_core::bootstrap::Bootstrap;
use crossover_core::call::ReduceOp;
use crossover_core::communicator::Communicator;
use crossover_core::eligibility::Clause;
use crossover_core::facts::HOST_ARCH;
use crossover_core::plan::OfferState;
use crossover_core::policy::Policy;
use crossover_core::registry::Registry;
use crossover_core::settings::GroupSettings;
use crossover_policy::{Settings, Sources};

use super::finding::{Finding, Verdict};

const WORLDS: [u32; 3] = [2, 8, 16];
/// On a machine with nothing else to do, a trial takes milliseconds.
const DEADLINE: Duration = Duration::from_secs(20);

pub(super) fn examine(settings: Option<&Settings>) -> Vec<Finding> {
    let Ok(registry) = crossover_backends::registry() else { return Vec::new() };
    if registry.entries().is_empty() {
        let advice = "link a backend: see the features of crossover-backends";
        return vec![Finding::warn("backends", "none is linked into this program", advice)];
    }
    // What is wrong with the policy has been found; the trial is about the node.
    let Ok(effective) = Sources::shipped(HOST_ARCH).load(&registry) else { return Vec::new() };
    let mut group =
        settings.map_or_else(GroupSettings::default, |settings| settings.group("doctor"));
    group.backends.call_deadline = DEADLINE;
    let mut findings: Vec<Finding> = Vec::new();
    for world in WORLDS {
        // What a small group cannot have, a large one cannot either.
        if findings.iter().all(|finding| finding.verdict == Verdict::Ok) {
            findings.push(examine_world(world, &registry, &effective.policy, &group));
        }
    }
    findings
}

fn examine_world(
    world: u32,
    registry: &Registry,
    policy: &Policy,
    settings: &GroupSettings,
) -> Finding {
    let check = "group";
    let ranks = thread::scope(|scope| {
        let ranks: Vec<_> = threads(world, DEADLINE)
            .into_iter()
            .map(|boot| scope.spawn(move || try_rank(&boot, registry, policy, settings)))
            .collect();
        let joined = ranks.into_iter().map(|rank| {
            rank.join().unwrap_or_else(|_| Err("a rank of the trial panicked".to_owned()))
        });
        joined.collect::<Result<Vec<String>, String>>()
    });
    match ranks {
        Ok(told) => {
            let told = told.into_iter().next().unwrap_or_default();
            Finding::ok(check, format!("of {world} ranks: {told}"))
        }
        Err(why) => Finding::fail(check, format!("of {world} ranks: {why}"), None),
    }
}

/// What became of each backend, told on every rank alike.
fn try_rank(
    boot: &dyn Bootstrap,
    registry: &Registry,
    policy: &Policy,
    settings: &GroupSettings,
) -> Result<String, String> {
    let report = crossover::report(None);
    let group =
        Communicator::form(boot, registry, policy, report, settings).map_err(|e| e.to_string())?;
    let (rank, world) = (u64::from(group.rank()), u64::from(group.world()));
    let mut values = [rank + 1; 1024];
    group.all_reduce_in_place(&mut values, ReduceOp::Sum).map_err(|e| e.to_string())?;
    let sum = world * (world + 1) / 2;
    if values.iter().any(|value| *value != sum) {
        return Err(format!("an all_reduce gave {values:?} instead of {sum}"));
    }
    group.close().map_err(|e| e.to_string())?;
    // Which backends are not for host memory at all is told elsewhere.
    let offers = group.plan().offers().iter().filter_map(|offer| match &offer.state {
        OfferState::Open { .. } | OfferState::Mixed(_) => {
            Some(format!("{} is open", offer.descriptor.id))
        }
        OfferState::Unavailable(why) if [Clause::Setup, Clause::Presence].contains(&why.clause) => {
            Some(format!("{} is not: {why}", offer.descriptor.id))
        }
        OfferState::Unavailable(_) => None,
    });
    Ok(offers.collect::<Vec<_>>().join("; "))
}
