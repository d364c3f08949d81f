//! A group comes into being: ranks compare what must agree, exchange facts, and set backends up
//! by vote. Either it succeeds on every rank or it fails on every rank, with the same sentence.

mod bands;
mod divergence;
mod preamble;
mod set_up;

use crate::agreement::{StepFailed, gather};
use crate::backend::{Algorithm, Session};
use crate::bootstrap::{Bootstrap, BootstrapError};
use crate::contract::Contract;
use crate::digest::digest;
use crate::eligibility::{Clause, Refusal};
use crate::facts::{GroupFacts, RankReport};
use crate::plan::{Offer, OfferState, Plan, every_kind_of_call};
use crate::policy::{Candidate, Policy, Rule};
use crate::registry::{Registration, Registry};
use crate::settings::GroupSettings;

pub(crate) use bands::bands_in_words;

/// A group that has been formed: what a communicator starts from.
pub(crate) struct Formed {
    pub(crate) facts: GroupFacts,
    pub(crate) plan: Plan,
    /// By offer; `None` where the backend is not available.
    pub(crate) sessions: Vec<Option<Box<dyn Session>>>,
}

/// The group could not be formed; no rank has a communicator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// A peer was lost, is late, or does something else.
    #[error(transparent)]
    ControlPlane(#[from] BootstrapError),
    /// Ranks hold different policies, backends or settings.
    #[error("ranks disagree on {what}")]
    Diverged {
        /// On what; who holds which.
        what: String,
    },
    /// A backend that the operator or the program insists on cannot be had.
    #[error("`{target}` was asked for by {origin} and cannot be had: {why}")]
    Forced {
        /// The backend or algorithm.
        target: String,
        /// Who asked.
        origin: String,
        /// Why not.
        why: String,
    },
    /// A rank's setting for a backend has a value that the backend does not take.
    #[error(transparent)]
    Misset(StepFailed),
    /// The policy names only backends that are not available to this group.
    #[error("no backend is available to this group of {world}: {why}")]
    NoBackend {
        /// Number of ranks.
        world: u32,
        /// Each backend's reason.
        why: String,
    },
    /// Several ranks are on one device, and nobody allowed that.
    #[error(
        "{what}: give each rank a device of its own, or set allow_shared_device \
         (CROSSOVER_ALLOW_SHARED_DEVICE=1) on every rank"
    )]
    SharedDevice {
        /// Which ranks, on which device.
        what: String,
    },
}

pub(crate) fn form(
    boot: &dyn Bootstrap,
    registry: &Registry,
    policy: &Policy,
    report: RankReport,
    settings: &GroupSettings,
) -> Result<Formed, FormError> {
    let policy = &*preamble::agree(boot, registry, policy, settings)?;
    let facts = GroupFacts::agree(boot, &settings.tag, report)?;
    refuse_shared_units(&facts, settings)?;
    let mut offers = Vec::new();
    let mut sessions = Vec::new();
    for entry in registry.entries() {
        let (state, session) = match refused_at_sight(entry, policy, &facts) {
            Some(refusal) => (OfferState::Unavailable(refusal), None),
            None => set_up::set_up(boot, entry, &facts, settings)?,
        };
        if let OfferState::Unavailable(refusal) = &state {
            tracing::debug!(target: "crossover::form", backend = entry.descriptor.id, %refusal, "backend not available");
        }
        offers.push(Offer { descriptor: entry.descriptor, state });
        sessions.push(session);
    }
    let contract = settings.contract.intersection(policy.contract);
    compare_outcome(boot, &facts, contract, &offers)?;
    if facts.profile().world > 1 {
        demand_forced(policy, &facts, &offers)?;
        demand_any(&facts, &offers)?;
    }
    let plan = Plan::compile(facts.profile().clone(), contract, policy, offers);
    Ok(Formed { facts, plan, sessions })
}

/// Kernels of ranks that share a device wait for one another: only who knows that they all fit on it
/// asks for that.
fn refuse_shared_units(facts: &GroupFacts, settings: &GroupSettings) -> Result<(), FormError> {
    let shared = facts.shared_units();
    match settings.backends.allow_shared_device || shared.is_empty() {
        true => Ok(()),
        false => Err(FormError::SharedDevice { what: shared.join("; ") }),
    }
}

/// Why this backend need not be set up: a pure function of agreed facts and policy.
fn refused_at_sight(entry: &Registration, policy: &Policy, facts: &GroupFacts) -> Option<Refusal> {
    let profile = facts.profile();
    let descriptor = entry.descriptor;
    if profile.world == 1 {
        return Some(Refusal {
            clause: Clause::World,
            want: "two ranks or more".to_owned(),
            got: "1: a group of one copies".to_owned(),
        });
    }
    let mut clauses = descriptor.algorithms.iter().map(|a| a.eligibility.failing_group(profile));
    if let Some(first) = clauses.next().flatten()
        && clauses.all(|clause| clause.is_some())
    {
        return Some(descriptor.algorithms[0].eligibility.group_refusal(first, profile));
    }
    let named = policy.rules().iter().any(|r| r.chain.iter().any(|c| c.backend == descriptor.id));
    (!named).then(|| Refusal {
        clause: Clause::Presence,
        want: "a rule of the policy that names it".to_owned(),
        got: "none".to_owned(),
    })
}

/// What selection will read must be the same on every rank, whatever got it there.
fn compare_outcome(
    boot: &dyn Bootstrap,
    facts: &GroupFacts,
    contract: Contract,
    offers: &[Offer],
) -> Result<(), FormError> {
    let states: Vec<(&str, String)> =
        offers.iter().map(|o| (o.descriptor.id, format!("{:?}", o.state))).collect();
    let all =
        gather(boot, "finish forming the group", &digest(&(facts.profile(), contract, states)))?;
    match all.iter().position(|outcome| *outcome != all[0]) {
        None => Ok(()),
        Some(rank) => Err(FormError::Diverged {
            what: format!(
                "the group's facts: rank 0 has {}, rank {rank} has {}",
                all[0], all[rank]
            ),
        }),
    }
}

/// A forced rule that concerns the group must have its backends.
fn demand_forced(policy: &Policy, facts: &GroupFacts, offers: &[Offer]) -> Result<(), FormError> {
    let concerns = |rule: &Rule| {
        every_kind_of_call(policy.contract)
            .any(|call| rule.when.failing(facts.profile(), &call).is_none())
    };
    let forces = |rule: &&Rule| rule.forced && concerns(rule);
    let forcing = policy.rules().iter().filter(forces);
    for (rule, candidate) in forcing.flat_map(|r| r.chain.iter().map(move |c| (r, c))) {
        let offer = offers.iter().find(|o| o.descriptor.id == candidate.backend);
        let why = match offer.map(|offer| withheld(offer, candidate)) {
            Some(None) => continue,
            Some(Some(refusal)) => refusal.to_string(),
            None => "it is not linked into this program".to_owned(),
        };
        let (target, origin) = (candidate.target(), rule.origin.to_string());
        return Err(FormError::Forced { target, origin, why });
    }
    Ok(())
}

/// Why the group has none of the algorithms that a candidate names.
fn withheld<'a>(offer: &'a Offer, candidate: &Candidate) -> Option<&'a Refusal> {
    let named = |algorithm: &Algorithm| match &candidate.algorithm {
        Some(name) => name == algorithm.name,
        None => true,
    };
    let algorithms = offer.descriptor.algorithms.iter().enumerate().filter(|(_, a)| named(a));
    let mut rooms = algorithms.map(|(nth, _)| offer.state.room(nth));
    let first = rooms.next()?.err()?;
    rooms.all(|room| room.is_err()).then_some(first)
}

fn demand_any(facts: &GroupFacts, offers: &[Offer]) -> Result<(), FormError> {
    let mut reasons = Vec::new();
    for offer in offers {
        match &offer.state {
            OfferState::Open { .. } | OfferState::Mixed(_) => return Ok(()),
            OfferState::Unavailable(refusal) => {
                reasons.push(format!("`{}`: {refusal}", offer.descriptor.id));
            }
        }
    }
    let why = if reasons.is_empty() { "none is linked".to_owned() } else { reasons.join("; ") };
    Err(FormError::NoBackend { world: facts.profile().world, why })
}
