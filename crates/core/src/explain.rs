//! Why a call takes its path: the decision itself, told.

use std::collections::HashSet;

use crate::backend::{Descriptor, Param, Values};
use crate::call::{CallKind, CallSig};
use crate::eligibility::{Clause, Refusal};
use crate::plan::{Choice, No, Plan, Step};
use crate::policy::{Basis, ByteRange, Evidence, Layer, Origin, ParamValue};
use crate::vocabulary::vocabulary;

vocabulary! { "verdict",
    /// What became of a candidate.
    pub enum Verdict in Verdicts {
        /// It serves the call.
        Chosen = "chosen",
        /// The call's size is outside the candidate's range.
        SizeOutside = "size_outside",
        /// The backend is not available to the group, or cannot take the call.
        Ineligible = "ineligible",
        /// The rule is not for this group or call.
        NoMatch = "no_match",
        /// Something before it was chosen, or a `last` rule ended the search.
        NotReached = "not_reached",
    }
}

/// A decision and everything that was considered for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The call.
    pub call: CallKind,
    /// Its input bytes per rank.
    pub bytes: u64,
    /// What was chosen; `None` if nothing serves the call.
    pub chosen: Option<Chosen>,
    /// Every candidate of every rule, in the order in which they are tried.
    pub considered: Vec<Considered>,
    /// The sizes around this one that are decided alike, if they meet the multiples that this one
    /// meets: first and, unless there is no bound, last.
    pub holds: (u64, Option<u64>),
    /// What comes after them.
    pub next: Option<Next>,
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// `backend/algorithm`, or `copy`.
    pub target: String,
    /// The rule that chose it; empty for a copy.
    pub rule: String,
    /// The rule's layer.
    pub layer: Layer,
    /// Where the rule is written.
    pub origin: Origin,
    /// Where its numbers come from.
    pub evidence: Option<Evidence>,
    /// What its session receives, but for defaults: the algorithm's params by name, each value in
    /// words. A share of a cache is a size where the group's caches are known; where they are not,
    /// the default holds, and this is the share as the policy writes it, such as `l2/2`.
    pub params: Vec<(&'static str, String)>,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Considered {
    /// `backend/algorithm`; as written, where the backend is not linked.
    pub target: String,
    /// Its rule.
    pub rule: String,
    /// The rule's layer.
    pub layer: Layer,
    /// Where the rule is written.
    pub origin: Origin,
    /// Its range as written.
    pub range: ByteRange,
    /// Which bytes the range is about.
    pub basis: Basis,
    /// What became of it.
    pub verdict: Verdict,
    /// Why, in words; empty for the chosen one.
    pub reason: String,
}

/// The next size at which the decision changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// Input bytes per rank.
    pub at: u64,
    /// Who serves from there; `None` if nobody.
    pub target: Option<String>,
    /// What its session receives, as in [`Chosen::params`].
    pub params: Vec<(&'static str, String)>,
}

/// One of the bands of sizes that are served alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The first size, in input bytes per rank.
    pub from: u64,
    /// Who serves; `None` if nobody.
    pub target: Option<String>,
    /// What its session receives, as in [`Chosen::params`].
    pub params: Vec<(&'static str, String)>,
}

impl Plan {
    /// The decision on a call, and why.
    pub fn explain(&self, call: &CallSig<'_>) -> Explanation {
        self.explain_kind(&call.kind(), call.bytes())
    }

    /// As [`Plan::explain`], of a kind of call and its input bytes per rank.
    pub fn explain_kind(&self, call: &CallKind, bytes: u64) -> Explanation {
        let call = &self.narrowed(call);
        let choice = self.decide(call, bytes);
        let (holds, next) = self.band_around(call, bytes);
        Explanation {
            call: *call,
            bytes,
            chosen: choice.map(|choice| self.chosen(choice)),
            considered: self.considered(call, bytes, choice),
            holds,
            next,
        }
    }

    /// Who serves which sizes, and with which params: the bands, ascending from 0. Sizes are taken
    /// to be multiples of whatever a kernel wants.
    pub fn sweep(&self, call: &CallKind) -> Vec<Swept> {
        let mut bands = self.bands(call, 0);
        bands.dedup_by(|next, band| self.served_alike(next.1, band.1));
        let swept = |(from, choice): (u64, Option<Choice>)| Swept {
            from,
            target: choice.map(|c| self.name_of(c)),
            params: choice.map(|c| self.params_in_words(c)).unwrap_or_default(),
        };
        bands.into_iter().map(swept).collect()
    }

    /// By one algorithm, which receives one set of params; not: by one rule.
    fn served_alike(&self, one: Option<Choice>, other: Option<Choice>) -> bool {
        let served_by = |choice: Choice| match choice {
            Choice::Copy => None,
            Choice::Serve { offer, algorithm, .. } => {
                let shares: Vec<_> = self.params_with_shares(choice).map(|p| p.2).collect();
                Some((offer, algorithm, self.params_of(choice), shares))
            }
        };
        one.map(served_by) == other.map(served_by)
    }

    fn chosen(&self, choice: Choice) -> Chosen {
        let rule = self.rule_of(choice);
        Chosen {
            target: self.name_of(choice),
            rule: rule.map(|r| r.id.clone()).unwrap_or_default(),
            layer: rule.map_or(Layer::Builtin, |r| r.layer),
            origin: rule.map(|r| r.origin.clone()).unwrap_or_default(),
            evidence: rule.and_then(|r| r.evidence.clone()),
            params: self.params_in_words(choice),
        }
    }

    fn params_in_words(&self, choice: Choice) -> Vec<(&'static str, String)> {
        let words = self.params_with_shares(choice).filter_map(|(param, value, share)| {
            let text = match share {
                Some(share) => share.to_string(),
                None if value == param.default => return None,
                None => param.in_words(value),
            };
            Some((param.name, text))
        });
        words.collect()
    }

    /// The chosen algorithm's params, what its session receives for each, and the share of a cache
    /// that the policy states where the group's caches are not known.
    fn params_with_shares(
        &self,
        choice: Choice,
    ) -> impl Iterator<Item = (&'static Param, u64, Option<&ParamValue>)> {
        let (params, stated) = match choice {
            Choice::Copy => (&[][..], &[][..]),
            Choice::Serve { offer, algorithm, candidate } => {
                let descriptor = self.offers()[offer as usize].descriptor;
                let step = &self.steps()[candidate as usize];
                let written = &self.rules()[step.rule as usize].chain[step.written as usize];
                (descriptor.algorithms[algorithm as usize].params, &written.params[..])
            }
        };
        params.iter().zip(self.params_of(choice)).map(move |(param, value)| {
            let stated = stated.iter().find(|(name, _)| name == param.name);
            let unknown = |value: &&ParamValue| {
                matches!(value, ParamValue::Cache { .. })
                    && matches!(param.values, Values::Bytes { .. })
                    && value.resolve(param, self.group().world, self.group().caches).is_none()
            };
            (param, *value, stated.map(|(_, value)| value).filter(unknown))
        })
    }

    fn considered(&self, call: &CallKind, bytes: u64, choice: Option<Choice>) -> Vec<Considered> {
        let reached: HashSet<u32> = self.reached(call).map(|(at, _)| at).collect();
        let chosen = match choice {
            Some(Choice::Serve { candidate, .. }) => Some(candidate),
            Some(Choice::Copy) => Some(0), // a group of one reaches no candidate
            None => None,
        };
        let copies = choice == Some(Choice::Copy);
        (0..)
            .zip(self.steps())
            .map(|(at, step)| {
                let rule = &self.rules()[step.rule as usize];
                let written = &rule.chain[step.written as usize];
                let (verdict, reason) = if let Some(key) = rule.when.failing(self.group(), call) {
                    (Verdict::NoMatch, self.mismatch(key, call))
                } else if copies {
                    (Verdict::NotReached, "a group of one rank copies".to_owned())
                } else if chosen == Some(at) {
                    (Verdict::Chosen, String::new())
                } else if chosen.is_some_and(|chosen| chosen < at) {
                    (Verdict::NotReached, "an earlier candidate serves".to_owned())
                } else if !reached.contains(&at) {
                    (Verdict::NotReached, "an earlier rule is marked last".to_owned())
                } else {
                    self.rejection(step, call, bytes)
                };
                Considered {
                    target: self.target_of(step).unwrap_or_else(|| written.target()),
                    rule: rule.id.clone(),
                    layer: rule.layer,
                    origin: rule.origin.clone(),
                    range: written.bytes,
                    basis: written.basis,
                    verdict,
                    reason,
                }
            })
            .collect()
    }

    /// Why a candidate that was reached does not serve.
    fn rejection(&self, step: &Step, call: &CallKind, bytes: u64) -> (Verdict, String) {
        let clause = match self.judge(step, call, bytes) {
            Err(No::Size) => {
                return (Verdict::SizeOutside, format!("{bytes} B is outside its range"));
            }
            Err(No::Clause(clause)) => clause,
            Ok(_) => Clause::MultipleOf,
        };
        (Verdict::Ineligible, self.refusal(step, clause, call, bytes).to_string())
    }

    fn refusal(&self, step: &Step, clause: Clause, call: &CallKind, bytes: u64) -> Refusal {
        let Some(offer) = step.offer else {
            return Refusal {
                clause: Clause::Presence,
                want: "a backend linked into this program".to_owned(),
                got: format!("only {}", self.linked()),
            };
        };
        let offer = &self.offers()[offer as usize];
        let eligibility = &offer.descriptor.algorithms[step.algorithm as usize].eligibility;
        match offer.state.room(usize::from(step.algorithm)) {
            Err(refusal) => refusal.clone(),
            Ok(room) => eligibility.refusal(clause, self.group(), call, bytes, room),
        }
    }

    fn linked(&self) -> String {
        let ids: Vec<&str> = self.offers().iter().map(|o| o.descriptor.id).collect();
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    }

    fn target_of(&self, step: &Step) -> Option<String> {
        let descriptor: &Descriptor = self.offers()[step.offer? as usize].descriptor;
        Some(descriptor.target(&descriptor.algorithms[step.algorithm as usize]))
    }

    /// What the group or the call has where a rule wants something else.
    fn mismatch(&self, key: &str, call: &CallKind) -> String {
        let group = self.group();
        let has = match key {
            "op" => call.op.to_string(),
            "arch" => group.arch.clone(),
            "device" => group.device.clone(),
            "world" => group.world.to_string(),
            "nodes" => group.nodes.to_string(),
            "topology" => group.topology.to_string(),
            "group" => group.tag.clone(),
            "caps" => group.caps.to_string(),
            "dtype" => call.dtype.to_string(),
            "reduce_op" => call.reduce_op.to_string(),
            _ => call.mode.to_string(),
        };
        match key {
            "device" if has.is_empty() => {
                "the rule names a device, and the group states no device name".to_owned()
            }
            "group" if has.is_empty() => {
                "the rule names a group, and the group states no name".to_owned()
            }
            _ => format!("the rule is not for {key} = {has}"),
        }
    }

    /// The run of sizes around `bytes` that are decided alike, and what follows it. All of them are
    /// taken to meet the multiples that `bytes` meets: between two whole packs of a kernel that
    /// takes only whole ones, another serves, and no band would hold for more than one size.
    fn band_around(&self, call: &CallKind, bytes: u64) -> ((u64, Option<u64>), Option<Next>) {
        let bands = self.bands(call, bytes);
        let (below, above) = bands.split_at(bands.partition_point(|(from, _)| *from <= bytes));
        let here = below.last().and_then(|(_, choice)| *choice);
        let alike = |band: &&(u64, Option<Choice>)| self.served_alike(band.1, here);
        let from = below.iter().rev().take_while(alike).last().map_or(bytes, |(from, _)| *from);
        match above.iter().find(|band| !alike(band)) {
            None => ((from, None), None),
            Some((at, choice)) => {
                let target = choice.map(|c| self.name_of(c));
                let params = choice.map(|c| self.params_in_words(c)).unwrap_or_default();
                ((from, Some(at - 1)), Some(Next { at: *at, target, params }))
            }
        }
    }
}
