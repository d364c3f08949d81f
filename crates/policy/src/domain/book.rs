//! A policy's rules and what backends state, asked about group and call apart.
//!
//! Whether a rule matches and whether an algorithm takes a call is asked of the core's own judges
//! ([`Match::failing`], [`Eligibility::failing`](crossover_core::eligibility::Eligibility::failing)).
//! Only the order, the ranges and the multiples are walked here, as a plan walks them.

use std::collections::BTreeMap;

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Determinism, Deviations};
use crossover_core::facts::{Caps, GroupProfile, Topology};
use crossover_core::policy::{ByteRange, Candidate, Match, Rule};
use crossover_core::registry::Registry;

/// The rules of a policy, in order.
pub(crate) struct Book<'p> {
    pub(crate) rules: &'p [Rule],
    entries: Vec<Entry>,
    pub(crate) known: Vec<Known>,
}

/// A rule, taken apart.
struct Entry {
    of_group: Match,
    of_call: Match,
    /// By candidate: the algorithms that it names, as indices into [`Book::known`]; none where the
    /// backend is unknown.
    algorithms: Vec<Vec<usize>>,
}

/// An algorithm that a rule can name.
pub(crate) struct Known {
    pub(crate) descriptor: &'static Descriptor,
    pub(crate) algorithm: &'static Algorithm,
    /// Most input bytes per rank, by what it states and by what is known of set-ups.
    pub(crate) room: u64,
}

/// A candidate's algorithm that takes a kind of call, and for which sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    /// Index of the rule.
    pub(crate) rule: usize,
    /// Index into the rule's chain.
    pub(crate) candidate: usize,
    /// Index into [`Book::known`].
    pub(crate) algorithm: usize,
    /// The range as written, in input bytes per rank.
    pub(crate) range: ByteRange,
    /// Most input bytes per rank that there is room for.
    pub(crate) room: u64,
    /// It takes multiples of this.
    pub(crate) multiple_of: u64,
}

/// The loosest contract: what it refuses is refused by no contract.
pub(crate) const LOOSEST: Contract =
    Contract { determinism: Determinism::Any, accept: Deviations::ALL };

impl<'p> Book<'p> {
    /// `capacities` by backend, or by backend and algorithm.
    pub(crate) fn new(
        rules: &'p [Rule],
        registry: &Registry,
        capacities: &BTreeMap<String, u64>,
    ) -> Self {
        let mut known = Vec::new();
        for descriptor in registry.descriptors() {
            for algorithm in descriptor.algorithms {
                let room = |name: &str| capacities.get(name).copied().unwrap_or(u64::MAX);
                let agreed = room(descriptor.id).min(room(&descriptor.target(algorithm)));
                let room = agreed.min(algorithm.eligibility.max_bytes);
                known.push(Known { descriptor, algorithm, room });
            }
        }
        let entries = rules.iter().map(|rule| Entry::new(rule, &known)).collect();
        Book { rules, entries, known }
    }

    /// By rule: does it match this group, whatever the call?
    pub(crate) fn rules_for_group(&self, group: &GroupProfile) -> Vec<bool> {
        self.entries.iter().map(|e| e.of_group.failing(group, &ANY_CALL).is_none()).collect()
    }

    /// By rule: does it match this kind of call, whatever the group?
    pub(crate) fn rules_for_call(&self, call: &CallKind) -> Vec<bool> {
        let group = any_group();
        self.entries.iter().map(|e| e.of_call.failing(&group, call).is_none()).collect()
    }

    /// The algorithms that a candidate names.
    pub(crate) fn named_by(&self, rule: usize, candidate: usize) -> &[usize] {
        &self.entries[rule].algorithms[candidate]
    }

    /// Up to and with the first rule that is marked last.
    pub(crate) fn cut(&self, matched: &[usize]) -> Vec<usize> {
        let last = matched.iter().position(|rule| self.rules[*rule].last);
        matched[..last.map_or(matched.len(), |at| at + 1)].to_vec()
    }

    /// What can serve a kind of call, in the order in which it is tried, by the rules `reached`.
    pub(crate) fn reach(
        &self,
        group: &GroupProfile,
        call: &CallKind,
        reached: &[usize],
    ) -> Vec<Reach> {
        let mut reach = Vec::new();
        for &rule in reached {
            for (candidate, written) in self.rules[rule].chain.iter().enumerate() {
                let range = written.bytes.of_input(written.basis, call.op, group.world);
                for &algorithm in self.named_by(rule, candidate) {
                    let Known { algorithm: a, room, .. } = self.known[algorithm];
                    if a.eligibility.failing(group, call, 0, room).is_none() {
                        let multiple_of = a.eligibility.multiple_of;
                        reach.push(Reach { rule, candidate, algorithm, range, room, multiple_of });
                    }
                }
            }
        }
        reach
    }

    /// `backend/algorithm`.
    pub(crate) fn target(&self, algorithm: usize) -> String {
        let Known { descriptor, algorithm, .. } = self.known[algorithm];
        descriptor.target(algorithm)
    }
}

impl Entry {
    fn new(rule: &Rule, known: &[Known]) -> Entry {
        let when = rule.when.clone();
        let named = |candidate: &Candidate| {
            let names = |k: &Known| {
                let algorithm = candidate.algorithm.as_deref();
                k.descriptor.id == candidate.backend
                    && algorithm.is_none_or(|name| name == k.algorithm.name)
            };
            (0..known.len()).filter(|at| names(&known[*at])).collect()
        };
        Entry {
            of_call: Match {
                op: when.op,
                dtype: when.dtype,
                reduce_op: when.reduce_op,
                mode: when.mode,
                ..Match::default()
            },
            of_group: Match { op: None, dtype: None, reduce_op: None, mode: None, ..when },
            algorithms: rule.chain.iter().map(named).collect(),
        }
    }
}

/// For a match that asks nothing about the call.
const ANY_CALL: CallKind = CallKind {
    op: Op::AllReduce,
    dtype: Dtype::F32,
    reduce_op: ReduceOp::Sum,
    mode: Mode::Eager,
    contract: LOOSEST,
};

/// For a match that asks nothing about the group.
fn any_group() -> GroupProfile {
    GroupProfile {
        arch: String::new(),
        device: String::new(),
        world: 2,
        nodes: 1,
        topology: Topology::Pcie,
        tag: String::new(),
        caps: Caps::NONE,
        caches: Default::default(),
    }
}
