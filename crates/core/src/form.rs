//! A group comes into being: ranks compare what must agree, exchange facts, and set backends up
//! by vote. Either it succeeds on every rank or it fails on every rank, with the same sentence.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::agreement::{SetupError, SetupFailure, gather, with_setup};
use crate::backend::Session;
use crate::bootstrap::{Bootstrap, BootstrapError};
use crate::contract::Contract;
use crate::digest::Digest;
use crate::eligibility::{Clause, Refusal};
use crate::facts::{GroupFacts, RankReport};
use crate::plan::{Offer, OfferState, Plan};
use crate::policy::{Layer, Policy};
use crate::registry::{BackendStamp, Registration, Registry};
use crate::settings::GroupSettings;

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
    /// The policy names only backends that are not available to this group.
    #[error("no backend is available to this group of {world}: {why}")]
    NoBackend {
        /// Number of ranks.
        world: u32,
        /// Each backend's reason.
        why: String,
    },
}

pub(crate) fn form(
    boot: &dyn Bootstrap,
    registry: &Registry,
    policy: &Policy,
    report: RankReport,
    settings: &GroupSettings,
) -> Result<Formed, FormError> {
    compare(boot, &Preamble::of(registry, policy, settings))?;
    let facts = GroupFacts::agree(boot, &settings.tag, report)?;
    let mut offers = Vec::new();
    let mut sessions = Vec::new();
    for entry in registry.entries() {
        let (state, session) = match refused_at_sight(entry, policy, &facts) {
            Some(refusal) => (OfferState::Unavailable(refusal), None),
            None => set_up(boot, entry, &facts, settings)?,
        };
        if let OfferState::Unavailable(refusal) = &state {
            tracing::debug!(target: "crossover::form", backend = entry.descriptor.id, %refusal, "backend not available");
        }
        offers.push(Offer { descriptor: entry.descriptor, state });
        sessions.push(session);
    }
    if facts.profile().world > 1 {
        demand_forced(policy, &offers)?;
        demand_any(&facts, &offers)?;
    }
    gather(boot, "finish forming the group", &())?;
    let contract = settings.contract.intersection(policy.contract);
    let plan = Plan::compile(facts.profile().clone(), contract, policy, offers);
    Ok(Formed { facts, plan, sessions })
}

/// What must be equal on every rank before anything else is worth exchanging.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Preamble {
    tag: String,
    contract: Contract,
    backends: Vec<BackendStamp>,
    rules: Vec<RuleStamp>,
    policy: Digest,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct RuleStamp {
    id: String,
    origin: String,
    digest: Digest,
}

impl Preamble {
    fn of(registry: &Registry, policy: &Policy, settings: &GroupSettings) -> Self {
        let stamp = |r: &crate::policy::Rule| RuleStamp {
            id: r.id.clone(),
            origin: r.origin.to_string(),
            digest: r.digest(),
        };
        Preamble {
            tag: settings.tag.clone(),
            contract: settings.contract,
            backends: registry.stamps(),
            rules: policy.rules().iter().map(stamp).collect(),
            policy: policy.digest(),
        }
    }

    /// The first thing on which another rank differs from rank 0, in words.
    fn difference(&self, rank: usize, other: &Preamble) -> Option<String> {
        let says = |what: &str, zero: &dyn std::fmt::Display, odd: &dyn std::fmt::Display| {
            Some(format!("{what}: rank 0 has {zero}, rank {rank} has {odd}"))
        };
        if self.tag != other.tag {
            return says("the group's name", &quoted(&self.tag), &quoted(&other.tag));
        }
        if self.contract != other.contract {
            let words = |c: &Contract| format!("{} accepting {}", c.determinism, c.accept);
            return says("the engine's contract", &words(&self.contract), &words(&other.contract));
        }
        if let Some((zero, odd)) = first_difference(&self.backends, &other.backends, |b| &b.id) {
            let words = |b: Option<&BackendStamp>| match b {
                Some(b) => format!("`{}` version {} ({})", b.id, b.version, b.digest),
                None => "no such backend".to_owned(),
            };
            return says("the linked backends", &words(zero), &words(odd));
        }
        if let Some((zero, odd)) = first_difference(&self.rules, &other.rules, |r| &r.id) {
            let words = |r: Option<&RuleStamp>| match r {
                Some(r) => format!("rule `{}` of {} ({})", r.id, r.origin, r.digest),
                None => "no such rule".to_owned(),
            };
            return says("the policy", &words(zero), &words(odd));
        }
        // Equal rules and unequal digests: the policy's contract, or the order of equal rules.
        (self.policy != other.policy)
            .then(|| says("the policy's contract or order", &self.policy, &other.policy))?
    }
}

fn quoted(word: &str) -> String {
    format!("`{word}`")
}

/// The first entry that is not in both lists alike, matched by key.
fn first_difference<'a, T: PartialEq>(
    zero: &'a [T],
    odd: &'a [T],
    key: fn(&T) -> &String,
) -> Option<(Option<&'a T>, Option<&'a T>)> {
    let find = |list: &'a [T], id: &String| list.iter().find(|e| key(e) == id);
    zero.iter()
        .map(|a| (Some(a), find(odd, key(a))))
        .find(|(a, b)| a != b)
        .or_else(|| odd.iter().map(|b| (find(zero, key(b)), Some(b))).find(|(a, b)| a != b))
}

fn compare(boot: &dyn Bootstrap, mine: &Preamble) -> Result<(), FormError> {
    let all = gather(boot, "compare policies and backends", mine)?;
    let differs = all.iter().enumerate().find_map(|(rank, other)| all[0].difference(rank, other));
    match differs {
        None => Ok(()),
        Some(what) => Err(FormError::Diverged { what }),
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

/// Sets a backend up, everywhere or nowhere.
fn set_up(
    boot: &dyn Bootstrap,
    entry: &Registration,
    facts: &GroupFacts,
    settings: &GroupSettings,
) -> Result<(OfferState, Option<Box<dyn Session>>), FormError> {
    let outcome = with_setup(boot, &settings.backends, |setup| {
        let backend = (entry.make)();
        let ready = catch_unwind(AssertUnwindSafe(|| backend.set_up(setup, facts)));
        let ready = match ready {
            Ok(ready) => ready?,
            // It panicked between two steps: its peers are ahead or behind, and will say so.
            Err(_) => return Ok(None),
        };
        let capacity = ready.capacity.into_inner();
        Ok(Some((capacity, ready.session.into_inner())))
    });
    let refuse = |got: String| {
        let want = "set-up on every rank".to_owned();
        (OfferState::Unavailable(Refusal { clause: Clause::Setup, want, got }), None)
    };
    match outcome {
        Ok(Some((capacity, session))) => Ok((OfferState::Open { capacity }, Some(session))),
        Ok(None) => Ok(refuse("a panic".to_owned())),
        Err(SetupError(SetupFailure::Voted(failed))) => Ok(refuse(failed.to_string())),
        Err(SetupError(SetupFailure::ControlPlane(e))) => Err(e.into()),
    }
}

/// Rules of the layers `env` and `program` that end the search force their backends.
fn demand_forced(policy: &Policy, offers: &[Offer]) -> Result<(), FormError> {
    let forcing = policy.rules().iter().filter(|r| r.last && r.layer >= Layer::Env);
    for candidate in forcing.clone().flat_map(|r| r.chain.iter().map(move |c| (r, c))) {
        let (rule, candidate) = candidate;
        let offer = offers.iter().find(|o| o.descriptor.id == candidate.backend);
        let why = match offer.map(|o| &o.state) {
            Some(OfferState::Open { .. }) => continue,
            Some(OfferState::Unavailable(refusal)) => refusal.to_string(),
            None => "it is not linked into this program".to_owned(),
        };
        let (target, origin) = (candidate.target(), rule.origin.to_string());
        return Err(FormError::Forced { target, origin, why });
    }
    Ok(())
}

fn demand_any(facts: &GroupFacts, offers: &[Offer]) -> Result<(), FormError> {
    let mut reasons = Vec::new();
    for offer in offers {
        match &offer.state {
            OfferState::Open { .. } => return Ok(()),
            OfferState::Unavailable(refusal) => {
                reasons.push(format!("`{}`: {refusal}", offer.descriptor.id));
            }
        }
    }
    let why = if reasons.is_empty() { "none is linked".to_owned() } else { reasons.join("; ") };
    Err(FormError::NoBackend { world: facts.profile().world, why })
}
