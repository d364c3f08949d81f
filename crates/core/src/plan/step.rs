//! Candidates, bound to the algorithms that they name.

use crate::call::Op;
use crate::facts::GroupProfile;
use crate::plan::Offer;
use crate::policy::{Basis, ByteRange, Rule};

/// A candidate of a rule, bound to an algorithm. A bare backend name has one for each algorithm.
pub(crate) struct Step {
    pub(crate) rule: u32,
    /// Index into the rule's chain, for messages.
    pub(crate) written: u32,
    /// `None` where the backend is not linked.
    pub(crate) offer: Option<u16>,
    pub(crate) algorithm: u16,
    /// What its session receives: indices into the plan's params.
    pub(super) params: std::ops::Range<u32>,
    /// The written range.
    bytes: ByteRange,
    pub(super) basis: Basis,
}

impl Step {
    /// The range as input bytes per rank.
    pub(super) fn input_bytes(&self, op: Op, world: u32) -> ByteRange {
        self.bytes.of_input(self.basis, op, world)
    }
}

/// Every candidate of every rule, in order, and the values of all their params.
pub(super) struct Bound {
    pub(super) steps: Vec<Step>,
    /// By rule: its steps.
    pub(super) of_rule: Vec<std::ops::Range<u32>>,
    pub(super) params: Vec<u64>,
}

/// Binds every candidate of every rule to the algorithms it names, and its params to their values.
pub(super) fn bind(rules: &[Rule], offers: &[Offer], group: &GroupProfile) -> Bound {
    let mut bound = Bound { steps: Vec::new(), of_rule: Vec::new(), params: Vec::new() };
    let Bound { steps, of_rule, params } = &mut bound;
    for (rule, r) in rules.iter().enumerate() {
        let first = steps.len() as u32;
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
                        params.extend(a.params.iter().map(|p| candidate.param(p, group)));
                        steps.push(step(Some(offer), algorithm, first..params.len() as u32));
                    }
                }
            }
            if steps.len() == before {
                steps.push(step(None, 0, 0..0)); // kept, so that an explanation can say why not
            }
        }
        of_rule.push(first..steps.len() as u32);
    }
    bound
}
