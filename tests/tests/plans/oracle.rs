//! The semantics of a policy once more.

use crossover_core::call::{CallKind, Op};
use crossover_core::facts::GroupProfile;
use crossover_core::plan::{Offer, OfferState};
use crossover_core::policy::{Basis, Policy};

/// The semantics of a policy, told as directly as can be: no bands, no masks.
pub(crate) fn oracle(
    policy: &Policy,
    group: &GroupProfile,
    offers: &[Offer],
    call: &CallKind,
    bytes: u64,
) -> Option<String> {
    if group.world == 1 {
        return Some("copy".to_owned());
    }
    let output = match call.op {
        Op::AllGather => u128::from(bytes) * u128::from(group.world),
        Op::ReduceScatter => u128::from(bytes / u64::from(group.world)),
        _ => u128::from(bytes),
    };
    for rule in policy.rules().iter().filter(|r| r.when.failing(group, call).is_none()) {
        for candidate in &rule.chain {
            let size = match candidate.basis {
                Basis::Input => u128::from(bytes),
                Basis::Output => output,
            };
            let inside = u128::from(candidate.bytes.low) <= size
                && candidate.bytes.high.is_none_or(|high| size < u128::from(high));
            for offer in offers.iter().filter(|o| inside && o.descriptor.id == candidate.backend) {
                for (nth, algorithm) in offer.descriptor.algorithms.iter().enumerate() {
                    let named = candidate.algorithm.as_deref().is_none_or(|a| a == algorithm.name);
                    let capacity = match &offer.state {
                        OfferState::Open { capacity } => *capacity,
                        OfferState::Mixed(rooms) => match rooms[nth] {
                            Ok(capacity) => capacity,
                            Err(_) => continue,
                        },
                        OfferState::Unavailable(_) => continue,
                    };
                    let e = &algorithm.eligibility;
                    let takes = e.failing(group, call, bytes, capacity).is_none();
                    if named && takes && bytes.is_multiple_of(e.multiple_of) {
                        return Some(format!("{}/{}", offer.descriptor.id, algorithm.name));
                    }
                }
            }
        }
        if rule.last {
            return None;
        }
    }
    None
}

/// Sizes whose output is a whole number of elements for every rank, where the op needs that.
pub(crate) fn whole(op: Op, bytes: u64, world: u32) -> u64 {
    match op {
        Op::ReduceScatter | Op::AllToAll => bytes - bytes % u64::from(world),
        _ => bytes,
    }
}
