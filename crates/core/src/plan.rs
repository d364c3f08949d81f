//! A policy and a group's backends, compiled: what a call walks.
//!
//! There is one decision path, `Plan::judge`: it says of one candidate and one call whether the
//! candidate serves. [`Plan::compile`] asks it at every size where an answer can change and keeps
//! the answers as bands; [`Plan::select`] looks a call up in the bands; and [`Plan::explain`]
//! tells a person what it answered. So an explanation cannot differ from what runs.

use crate::backend::Descriptor;
use crate::call::{CallKind, CallSig, Dtype, Mode, Op, ReduceOp};
use crate::contract::Contract;
use crate::digest::Digest;
use crate::eligibility::{Clause, Refusal};
use crate::facts::GroupProfile;
use crate::policy::{Basis, ByteRange, Policy, Rule};

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
    /// Not available on any rank.
    Unavailable(Refusal),
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
    candidates: Vec<Step>,
    params: Vec<u64>,
    slots: Vec<std::ops::Range<u32>>,
    bands: Vec<Band>,
    picks: Vec<Pick>,
}

/// A candidate of a rule, bound to an algorithm. A bare backend name has one for each algorithm.
pub(crate) struct Step {
    pub(crate) rule: u32,
    /// Index into the rule's chain, for messages.
    pub(crate) written: u32,
    /// `None` where the backend is not linked.
    pub(crate) offer: Option<u16>,
    pub(crate) algorithm: u16,
    /// What its session receives: indices into the plan's params.
    params: std::ops::Range<u32>,
    /// The written range.
    bytes: ByteRange,
    basis: Basis,
}

impl Step {
    /// The range as input bytes per rank.
    fn input_bytes(&self, op: Op, world: u32) -> ByteRange {
        let world = u64::from(world);
        let convert: &dyn Fn(u64) -> u64 = match (self.basis, op) {
            (Basis::Output, Op::AllGather) => &|output| output.div_ceil(world),
            (Basis::Output, Op::ReduceScatter) => &|output| output.saturating_mul(world),
            _ => &|same| same,
        };
        ByteRange { low: convert(self.bytes.low), high: self.bytes.high.map(convert) }
    }
}

/// From this size on, these picks.
struct Band {
    from: u64,
    picks: std::ops::Range<u32>,
}

/// Serves sizes that have no bit of the mask: multiples of a power of two. A mask, since a
/// division costs as much as the rest of a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pick {
    mask: u64,
    candidate: u32,
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
        let (candidates, params) = bind(&rules, &offers, group.world);
        let mut plan = Plan {
            candidates,
            params,
            group,
            contract,
            policy: policy.digest(),
            offers,
            rules,
            slots: Vec::new(),
            bands: Vec::new(),
            picks: Vec::new(),
        };
        for call in every_kind_of_call(contract) {
            plan.compile_slot(&call);
        }
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
        let call = &self.narrowed(call);
        if call.contract != self.contract {
            return self.decide_as(call, bytes, bytes);
        }
        let slot = &self.slots[slot_of(call)];
        let bands = &self.bands[slot.start as usize..slot.end as usize];
        // A slot's first band starts at 0, so there is one before every partition point.
        let band = &bands[bands.partition_point(|b| b.from <= bytes) - 1];
        let picks = &self.picks[band.picks.start as usize..band.picks.end as usize];
        let pick = picks.iter().find(|p| bytes & p.mask == 0)?;
        Some(self.choice(pick.candidate))
    }

    /// A call can demand more than the group's contract, and accept less; never the reverse.
    pub(crate) fn narrowed(&self, call: &CallKind) -> CallKind {
        CallKind { contract: self.contract.intersection(call.contract), ..*call }
    }

    /// The decision without the bands, on a size that meets the multiples which `like` meets.
    pub(crate) fn decide_as(&self, call: &CallKind, bytes: u64, like: u64) -> Option<Choice> {
        if self.group.world == 1 {
            return Some(Choice::Copy);
        }
        let mut serving = self.serving(call, bytes);
        let (candidate, _) = serving.find(|(_, multiple_of)| like & (multiple_of - 1) == 0)?;
        Some(self.choice(candidate))
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
                let params = &self.candidates[candidate as usize].params;
                &self.params[params.start as usize..params.end as usize]
            }
        }
    }

    /// The rule that chose; `None` for a copy.
    pub fn rule_of(&self, choice: Choice) -> Option<&Rule> {
        match choice {
            Choice::Copy => None,
            Choice::Serve { candidate, .. } => {
                Some(&self.rules[self.candidates[candidate as usize].rule as usize])
            }
        }
    }

    /// Every size at which a decision on this op can change, ascending, from 0.
    pub(crate) fn breakpoints(&self, op: Op) -> Vec<u64> {
        self.breakpoints_of(op, 0..self.candidates.len() as u32)
    }

    fn breakpoints_of(&self, op: Op, candidates: impl Iterator<Item = u32>) -> Vec<u64> {
        let mut points = vec![0];
        for candidate in candidates {
            let step = &self.candidates[candidate as usize];
            let bytes = step.input_bytes(op, self.group.world);
            points.push(bytes.low);
            points.extend(bytes.high);
            points.extend(self.capacity(step).and_then(|capacity| capacity.checked_add(1)));
        }
        points.sort_unstable();
        points.dedup();
        points
    }

    /// The candidates whose rule matches, in order, up to the end of a `last` rule.
    pub(crate) fn reached(&self, call: &CallKind) -> impl Iterator<Item = (u32, &Step)> {
        let mut closed_by = None;
        self.candidates
            .iter()
            .enumerate()
            .take_while(move |(_, step)| {
                if closed_by.is_some_and(|rule| rule != step.rule) {
                    return false;
                }
                let rule = &self.rules[step.rule as usize];
                if rule.last && rule.when.failing(&self.group, call).is_none() {
                    closed_by = Some(step.rule);
                }
                true
            })
            .filter(|(_, step)| {
                self.rules[step.rule as usize].when.failing(&self.group, call).is_none()
            })
            .map(|(at, step)| (at as u32, step))
    }

    /// Does this candidate serve this call, but for the multiple?
    pub(crate) fn judge(&self, step: &Step, call: &CallKind, bytes: u64) -> Result<u64, No> {
        if !step.input_bytes(call.op, self.group.world).contains(bytes) {
            return Err(No::Size);
        }
        let Some(offer) = step.offer else {
            return Err(No::Clause(Clause::Presence));
        };
        let offer = &self.offers[offer as usize];
        let eligibility = &offer.descriptor.algorithms[step.algorithm as usize].eligibility;
        match &offer.state {
            OfferState::Unavailable(refusal) => Err(No::Clause(refusal.clause)),
            OfferState::Open { capacity } => {
                match eligibility.failing(&self.group, call, bytes, *capacity) {
                    Some(clause) => Err(No::Clause(clause)),
                    None => Ok(eligibility.multiple_of),
                }
            }
        }
    }

    pub(crate) fn candidates(&self) -> &[Step] {
        &self.candidates
    }

    /// The most input bytes for which there is room; `None` where the backend cannot be had.
    fn capacity(&self, step: &Step) -> Option<u64> {
        let offer = &self.offers[step.offer? as usize];
        let ever = offer.descriptor.algorithms[step.algorithm as usize].eligibility.max_bytes;
        match offer.state {
            OfferState::Open { capacity } => Some(capacity.min(ever)),
            OfferState::Unavailable(_) => None,
        }
    }

    /// The candidates that serve, each with the multiple it wants.
    fn serving(&self, call: &CallKind, bytes: u64) -> impl Iterator<Item = (u32, u64)> {
        self.reached(call)
            .filter_map(move |(at, step)| Some((at, self.judge(step, call, bytes).ok()?)))
    }

    fn choice(&self, candidate: u32) -> Choice {
        let step = &self.candidates[candidate as usize];
        let offer = step.offer.expect("a candidate that serves is bound to an offer");
        Choice::Serve { offer, algorithm: step.algorithm, candidate }
    }

    fn compile_slot(&mut self, call: &CallKind) {
        let first_band = self.bands.len();
        // Which rules match does not depend on the size: ask once, not at every breakpoint.
        let reached: Vec<u32> = self.reached(call).map(|(at, _)| at).collect();
        for from in self.breakpoints_of(call.op, reached.iter().copied()) {
            let mut picks = Vec::new();
            for &candidate in &reached {
                let step = &self.candidates[candidate as usize];
                if let Ok(multiple_of) = self.judge(step, call, from) {
                    picks.push(Pick { mask: multiple_of - 1, candidate });
                    if multiple_of == 1 {
                        break;
                    }
                }
            }
            let last = self.bands[first_band..].last().map(|b| &b.picks);
            let same =
                last.is_some_and(|r| self.picks[r.start as usize..r.end as usize] == picks[..]);
            if !same {
                let start = self.picks.len() as u32;
                self.picks.extend(picks);
                self.bands.push(Band { from, picks: start..self.picks.len() as u32 });
            }
        }
        self.slots.push(first_band as u32..self.bands.len() as u32);
    }
}

/// Binds every candidate of every rule to the algorithms it names, and its params to their values.
fn bind(rules: &[Rule], offers: &[Offer], world: u32) -> (Vec<Step>, Vec<u64>) {
    let mut steps = Vec::new();
    let mut params = Vec::new();
    for (rule, r) in rules.iter().enumerate() {
        for (written, candidate) in r.chain.iter().enumerate() {
            let step = |offer, algorithm, params| Step {
                rule: rule as u32,
                written: written as u32,
                offer,
                algorithm,
                params,
                bytes: candidate.bytes,
                basis: candidate.basis,
            };
            let before = steps.len();
            for (offer, o) in
                (0..).zip(offers).filter(|(_, o)| o.descriptor.id == candidate.backend)
            {
                for (algorithm, a) in (0..).zip(o.descriptor.algorithms) {
                    if candidate.algorithm.as_deref().is_none_or(|name| name == a.name) {
                        let first = params.len() as u32;
                        params.extend(a.params.iter().map(|p| candidate.param(p, world)));
                        steps.push(step(Some(offer), algorithm, first..params.len() as u32));
                    }
                }
            }
            if steps.len() == before {
                steps.push(step(None, 0, 0..0)); // kept, so that an explanation can say why not
            }
        }
    }
    (steps, params)
}

/// One call for each slot, in slot order.
pub(crate) fn every_kind_of_call(contract: Contract) -> impl Iterator<Item = CallKind> {
    Op::ALL.iter().flat_map(move |&op| {
        Dtype::ALL.iter().flat_map(move |&dtype| {
            Mode::ALL.iter().flat_map(move |&mode| {
                let reduce_ops = if op.reduces() { ReduceOp::ALL } else { &[ReduceOp::Sum] };
                reduce_ops.iter().map(move |&reduce_op| CallKind {
                    op,
                    dtype,
                    reduce_op,
                    mode,
                    contract,
                })
            })
        })
    })
}

/// The index of a call's kind in [`every_kind_of_call`].
fn slot_of(call: &CallKind) -> usize {
    const KINDS: usize = Dtype::ALL.len() * Mode::ALL.len();
    const REDUCING: usize = KINDS * ReduceOp::ALL.len();
    let first = match call.op {
        Op::AllReduce => 0,
        Op::AllGather => REDUCING,
        Op::ReduceScatter => REDUCING + KINDS,
        Op::Broadcast => 2 * REDUCING + KINDS,
        Op::AllToAll => 2 * REDUCING + 2 * KINDS,
    };
    let kind = call.dtype as usize * Mode::ALL.len() + call.mode as usize;
    match call.op.reduces() {
        true => first + kind * ReduceOp::ALL.len() + call.reduce_op as usize,
        false => first + kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_numbered_as_they_are_compiled() {
        for (at, kind) in every_kind_of_call(Contract::DEFAULT).enumerate() {
            assert_eq!(slot_of(&kind), at, "{kind:?}");
        }
    }
}
