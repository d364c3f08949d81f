//! Ranks hold different policies: what differs is named, or rank 0's is taken by all.

use super::FormError;
use super::preamble::{first_difference, in_words};
use crate::agreement::gather;
use crate::bootstrap::{Bootstrap, BootstrapError};
use crate::digest::Digest;
use crate::policy::{Policy, Rule};
use crate::settings::OnDivergence;

/// Rank 0's policy, where every rank takes it; else what differs, on every rank the same. Only
/// rank 0's travels, whatever the number of ranks: each compares its own with it.
///
/// `digests` are those of all ranks' policies.
pub(super) fn settle(
    boot: &dyn Bootstrap,
    mine: &Policy,
    digests: &[Digest],
    on_divergence: OnDivergence,
) -> Result<Policy, FormError> {
    let zero = policy_of_rank_0(boot, mine, digests[0])?;
    let rank = boot.rank();
    let odd = digests[rank as usize] != digests[0];
    let what = odd.then(|| difference(&zero, rank, mine));
    match on_divergence {
        OnDivergence::Error => {
            let all: Vec<Option<String>> = gather(boot, "say how policies differ", &what)?;
            let first = all.into_iter().flatten().next();
            Err(FormError::Diverged { what: first.unwrap_or_else(|| "the policy".to_owned()) })
        }
        OnDivergence::AdoptRank0 => {
            if let Some(what) = what {
                let why = FormError::Diverged { what };
                tracing::warn!(target: "crossover::form", "{why}; rank {rank} takes rank 0's");
            }
            Ok(zero)
        }
    }
}

fn policy_of_rank_0(
    boot: &dyn Bootstrap,
    mine: &Policy,
    digest: Digest,
) -> Result<Policy, BootstrapError> {
    let step = "compare rules";
    let given = (boot.rank() == 0).then(|| mine.clone());
    let received = gather(boot, step, &given)?.swap_remove(0);
    received.filter(|zero| zero.digest() == digest).ok_or_else(|| BootstrapError::Garbled {
        rank: 0,
        step: step.to_owned(),
        what: format!("a policy that is not the one of digest {digest}"),
    })
}

/// The first thing in which two policies differ: a rule, the contract or the order. Where a rule is
/// written decides nothing: paths and lines may differ.
fn difference(zero: &Policy, rank: u32, odd: &Policy) -> String {
    let same = |a: &Rule, b: &Rule| a.digest() == b.digest();
    let named = |rule: &Rule| format!("rule `{}` of {}", rule.id, rule.origin);
    match first_difference(zero.rules(), odd.rules(), |r| &r.id, same) {
        Some((Some(a), Some(b))) => format!(
            "the policy: rank 0 has {} ({}), rank {rank} has {} ({}), and they differ in {}",
            named(a),
            a.digest(),
            named(b),
            b.digest(),
            fields_that_differ(a, b),
        ),
        Some((Some(a), None)) => {
            format!("the policy: rank 0 has {}, rank {rank} has no such rule", named(a))
        }
        Some((None, Some(b))) => {
            format!("the policy: rank {rank} has {}, rank 0 has no such rule", named(b))
        }
        _ if zero.contract != odd.contract => {
            let (zero, odd) = (in_words(zero.contract), in_words(odd.contract));
            format!("the policy's contract: rank 0 has {zero}, rank {rank} has {odd}")
        }
        _ => {
            let mut pairs = zero.rules().iter().zip(odd.rules());
            match pairs.find(|(a, b)| !same(a, b)) {
                Some((a, b)) => format!(
                    "the order of the policy's rules: rank 0 tries {} where rank {rank} tries {}",
                    named(a),
                    named(b),
                ),
                // A program may have given one rule twice.
                None => format!(
                    "the number of the policy's rules: rank 0 has {}, rank {rank} has {}",
                    zero.rules().len(),
                    odd.rules().len(),
                ),
            }
        }
    }
}

/// By the keys under which a file states them.
fn fields_that_differ(a: &Rule, b: &Rule) -> String {
    let fields = [
        ("layer", a.layer != b.layer),
        ("`priority`", a.priority != b.priority),
        ("`last`", a.last != b.last),
        ("whether it is forced", a.forced != b.forced),
        ("`match`", a.when != b.when),
        ("`chain`", a.chain != b.chain),
    ];
    let differing: Vec<&str> = fields.iter().filter(|f| f.1).map(|f| f.0).collect();
    differing.join(", ")
}
