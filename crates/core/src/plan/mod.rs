//! A policy and a group's backends, compiled: what a call walks.
//!
//! There is one decision path, `Plan::judge`: it says of one candidate and one call whether the
//! candidate serves. [`Plan::compile`] asks it where an answer can change and keeps the answers as
//! bands of sizes; [`Plan::select`] looks a call up in the bands; and [`Plan::explain`] tells a
//! person what it answered. So an explanation cannot differ from what runs.
//!
//! Below this page: `step` (candidates and the algorithms they name), `kinds` (kinds of call,
//! numbered), `compile` (which kinds share bands, and what is tried for them), `paint` (ranges to
//! bands), `table` and `index` (the look-up).

mod compile;
mod index;
mod kinds;
mod paint;
mod step;
mod table;

use crate::backend::Descriptor;
use crate::call::{CallKind, CallSig};
use crate::contract::Contract;
use crate::digest::Digest;
use crate::eligibility::{Clause, Refusal};
use crate::facts::GroupProfile;
use crate::plan::compile::Tables;
use crate::plan::step::{Bound, bind};
use crate::policy::{Policy, Rule};

pub(crate) use crate::plan::kinds::every_kind_of_call;
pub(crate) use crate::plan::step::Step;

/// A backend as this group has it.
#[derive(Clone, Debug)]
pub struct Offer {
    /// What it states.
    pub descriptor: &'static Descriptor,
    /// Set up, or why not.
    pub state: OfferState,
}

/// Whether a group can use a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferState {
    /// Set up on every rank, with room for this many input bytes per rank.
    Open {
        /// `u64::MAX` if any number.
        capacity: u64,
    },
    /// Set up on every rank, and not all algorithms are alike: by algorithm, in the descriptor's
    /// order, the input bytes per rank for which it has room, or why this group cannot have it.
    Mixed(Vec<Result<u64, Refusal>>),
    /// Not available on any rank.
    Unavailable(Refusal),
}

impl OfferState {
    /// For how many input bytes per rank an algorithm has room, or why it cannot be had.
    ///
    /// # Errors
    ///
    /// It cannot be had.
    pub fn room(&self, algorithm: usize) -> Result<u64, &Refusal> {
        match self {
            OfferState::Open { capacity } => Ok(*capacity),
            OfferState::Mixed(rooms) => rooms[algorithm].as_ref().copied(),
            OfferState::Unavailable(refusal) => Err(refusal),
        }
    }

    /// The most for which any of its algorithms has room; `None` where none can be had.
    pub fn capacity(&self) -> Option<u64> {
        match self {
            OfferState::Open { capacity } => Some(*capacity),
            OfferState::Mixed(rooms) => rooms.iter().flatten().copied().max(),
            OfferState::Unavailable(_) => None,
        }
    }
}

/// Who serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The group has one rank: the core copies.
    Copy,
    /// An algorithm of an offered backend.
    Serve {
        /// Index into [`Plan::offers`].
        offer: u16,
        /// Index into its descriptor's algorithms.
        algorithm: u16,
        /// Index of the candidate in the plan, for [`Plan::rule_of`].
        candidate: u32,
    },
}

/// The name of [`Choice::Copy`] in reports.
pub const COPY: &str = "copy";

/// The compiled policy of one group.
pub struct Plan {
    group: GroupProfile,
    contract: Contract,
    policy: Digest,
    offers: Vec<Offer>,
    rules: Vec<Rule>,
    /// The rules that are for this group: no call can change that.
    in_force: Vec<u32>,
    steps: Vec<Step>,
    /// By rule: its steps.
    steps_of: Vec<std::ops::Range<u32>>,
    params: Vec<u64>,
    tables: Tables,
}

/// Why a candidate does not serve a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum No {
    Size,
    Clause(Clause),
}

impl Plan {
    /// Compiles. Pure: equal arguments give equal plans, on every rank.
    pub fn compile(
        group: GroupProfile,
        contract: Contract,
        policy: &Policy,
        offers: Vec<Offer>,
    ) -> Plan {
        let rules = policy.rules().to_vec();
        let Bound { steps, of_rule, params } = bind(&rules, &offers, &group);
        let fits = |rule: &Rule| rule.when.fits_group(&group);
        let in_force = (0..).zip(&rules).filter(|(_, rule)| fits(rule)).map(|(at, _)| at);
        let mut plan = Plan {
            in_force: in_force.collect(),
            steps,
            steps_of: of_rule,
            params,
            group,
            contract,
            policy: policy.digest(),
            offers,
            rules,
            tables: Tables::default(),
        };
        plan.tables = plan.compile_tables();
        plan
    }

    /// The group it is for.
    pub fn group(&self) -> &GroupProfile {
        &self.group
    }

    /// The contract it is compiled for. A call that narrows it is decided right, but slower; a call
    /// cannot widen it.
    pub fn contract(&self) -> Contract {
        self.contract
    }

    /// The digest of the policy it was compiled from.
    pub fn policy_digest(&self) -> Digest {
        self.policy
    }

    /// The group's backends, sorted by id.
    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// The rules, in the order in which they are tried.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Who serves this call; `None` if nobody. Allocates nothing, takes no lock.
    pub fn select(&self, call: &CallSig<'_>) -> Option<Choice> {
        self.decide(&call.kind(), call.bytes())
    }

    /// As [`Plan::select`], of a kind of call and its input bytes per rank.
    pub fn decide(&self, call: &CallKind, bytes: u64) -> Option<Choice> {
        if self.group.world == 1 {
            return Some(Choice::Copy);
        }
        let narrowed = self.narrowed(call);
        if narrowed.contract != self.contract {
            return self.walk(&narrowed, bytes);
        }
        self.tables.of(call).serve(bytes)
    }

    /// A call can demand more than the group's contract, and accept less; never the reverse.
    pub(crate) fn narrowed(&self, call: &CallKind) -> CallKind {
        CallKind { contract: self.contract.intersection(call.contract), ..*call }
    }

    /// The decision without the bands.
    fn walk(&self, call: &CallKind, bytes: u64) -> Option<Choice> {
        let serves = |step: &Step| match self.judge(step, call, bytes) {
            Ok(multiple_of) => bytes & (multiple_of - 1) == 0,
            Err(_) => false,
        };
        let (candidate, step) = self.reached(call).find(|(_, step)| serves(step))?;
        Some(Choice::Serve { offer: step.offer?, algorithm: step.algorithm, candidate })
    }

    /// Who serves sizes that meet the multiples which `like` meets: from which size on, ascending
    /// from 0.
    pub(crate) fn bands(&self, call: &CallKind, like: u64) -> Vec<(u64, Option<Choice>)> {
        if self.group.world == 1 {
            return vec![(0, Some(Choice::Copy))];
        }
        let narrowed = self.narrowed(call);
        if narrowed.contract != self.contract {
            return self.table(&narrowed).bands(like).collect();
        }
        self.tables.of(call).bands(like).collect()
    }

    /// `backend/algorithm`, or `copy`.
    pub fn name_of(&self, choice: Choice) -> String {
        match choice {
            Choice::Copy => COPY.to_owned(),
            Choice::Serve { offer, algorithm, .. } => {
                let descriptor = self.offers[offer as usize].descriptor;
                descriptor.target(&descriptor.algorithms[algorithm as usize])
            }
        }
    }

    /// The values of the chosen algorithm's params, in its own order.
    pub fn params_of(&self, choice: Choice) -> &[u64] {
        match choice {
            Choice::Copy => &[],
            Choice::Serve { candidate, .. } => {
                let params = &self.steps[candidate as usize].params;
                &self.params[params.start as usize..params.end as usize]
            }
        }
    }

    /// The rule that chose; `None` for a copy.
    pub fn rule_of(&self, choice: Choice) -> Option<&Rule> {
        match choice {
            Choice::Copy => None,
            Choice::Serve { candidate, .. } => {
                Some(&self.rules[self.steps[candidate as usize].rule as usize])
            }
        }
    }

    /// The rules that match, in order, up to one that is `last`.
    pub(crate) fn matching(&self, call: &CallKind) -> impl Iterator<Item = u32> {
        let mut ended = false;
        self.in_force
            .iter()
            .copied()
            .filter(|rule| self.rules[*rule as usize].when.fits_call(call))
            .take_while(move |rule| !std::mem::replace(&mut ended, self.rules[*rule as usize].last))
    }

    /// The candidates of those rules, in order.
    pub(crate) fn reached(&self, call: &CallKind) -> impl Iterator<Item = (u32, &Step)> {
        self.matching(call)
            .flat_map(|rule| self.steps_of[rule as usize].clone())
            .map(|at| (at, &self.steps[at as usize]))
    }

    /// Does this candidate serve this call, but for the multiple?
    pub(crate) fn judge(&self, step: &Step, call: &CallKind, bytes: u64) -> Result<u64, No> {
        if !step.input_bytes(call.op, self.group.world).contains(bytes) {
            return Err(No::Size);
        }
        let offer = step.offer.ok_or(No::Clause(Clause::Presence))?;
        self.takes(offer, step.algorithm, call, bytes).map_err(No::Clause)
    }

    /// Does this algorithm take this call? Then, the multiple that it wants.
    fn takes(
        &self,
        offer: u16,
        algorithm: u16,
        call: &CallKind,
        bytes: u64,
    ) -> Result<u64, Clause> {
        let offer = &self.offers[offer as usize];
        let eligibility = &offer.descriptor.algorithms[algorithm as usize].eligibility;
        let room = offer.state.room(usize::from(algorithm)).map_err(|refusal| refusal.clause)?;
        match eligibility.failing(&self.group, call, bytes, room) {
            Some(clause) => Err(clause),
            None => Ok(eligibility.multiple_of),
        }
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The most input bytes for which there is room; `None` where the backend cannot be had.
    fn capacity(&self, step: &Step) -> Option<u64> {
        let offer = &self.offers[step.offer? as usize];
        let ever = offer.descriptor.algorithms[step.algorithm as usize].eligibility.max_bytes;
        Some(offer.state.room(usize::from(step.algorithm)).ok()?.min(ever))
    }
}
