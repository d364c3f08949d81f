//! Before anything else: do all ranks hold the same? Digests travel; what they are digests of
//! travels only where they differ.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::FormError;
use super::divergence::settle;
use crate::agreement::gather;
use crate::bootstrap::Bootstrap;
use crate::contract::Contract;
use crate::digest::Digest;
use crate::policy::Policy;
use crate::registry::{BackendStamp, Registry};
use crate::settings::{Check, GroupSettings, OnDivergence};

/// The policy that all ranks form the group by: this rank's own or, where ranks differ and all
/// want that, rank 0's.
pub(super) fn agree<'p>(
    boot: &dyn Bootstrap,
    registry: &Registry,
    policy: &'p Policy,
    settings: &GroupSettings,
) -> Result<Cow<'p, Policy>, FormError> {
    let mine = Preamble {
        tag: settings.tag.clone(),
        contract: settings.contract,
        backends: registry.stamps(),
        on_divergence: settings.on_divergence,
        allow_shared_device: settings.backends.allow_shared_device,
        check: settings.check,
        policy: policy.digest(),
    };
    let all = gather(boot, "compare policies and backends", &mine)?;
    let differs = all.iter().enumerate().find_map(|(rank, other)| all[0].difference(rank, other));
    if let Some(what) = differs {
        return Err(FormError::Diverged { what });
    }
    let digests: Vec<Digest> = all.iter().map(|preamble| preamble.policy).collect();
    match digests.iter().all(|digest| *digest == digests[0]) {
        true => Ok(Cow::Borrowed(policy)),
        false => settle(boot, policy, &digests, settings.on_divergence).map(Cow::Owned),
    }
}

/// What a rank comes with.
#[derive(Serialize, Deserialize)]
struct Preamble {
    tag: String,
    contract: Contract,
    backends: Vec<BackendStamp>,
    on_divergence: OnDivergence,
    allow_shared_device: bool,
    check: Check,
    policy: Digest,
}

impl Preamble {
    /// The first thing, apart from the policy, on which another rank differs from rank 0.
    fn difference(&self, rank: usize, other: &Preamble) -> Option<String> {
        let says = |what: &str, zero: &dyn Display, odd: &dyn Display| {
            Some(format!("{what}: rank 0 has {zero}, rank {rank} has {odd}"))
        };
        if self.tag != other.tag {
            let quoted = |word: &str| format!("`{word}`");
            return says("the group's name", &quoted(&self.tag), &quoted(&other.tag));
        }
        if self.contract != other.contract {
            let (zero, odd) = (in_words(self.contract), in_words(other.contract));
            return says("the engine's contract", &zero, &odd);
        }
        let same =
            |a: &BackendStamp, b: &BackendStamp| (&a.version, a.digest) == (&b.version, b.digest);
        if let Some((zero, odd)) =
            first_difference(&self.backends, &other.backends, |b| &b.id, same)
        {
            let words = |b: Option<&BackendStamp>| match b {
                Some(b) => format!("`{}` version {} ({})", b.id, b.version, b.digest),
                None => "no such backend".to_owned(),
            };
            return says("the linked backends", &words(zero), &words(odd));
        }
        if self.on_divergence != other.on_divergence {
            let setting = "the setting `on_divergence`";
            return says(setting, &self.on_divergence, &other.on_divergence);
        }
        if self.allow_shared_device != other.allow_shared_device {
            let setting = "the setting `allow_shared_device`";
            return says(setting, &self.allow_shared_device, &other.allow_shared_device);
        }
        if self.check != other.check {
            return says("the setting `check`", &self.check, &other.check);
        }
        None
    }
}

/// A contract as messages have it.
pub(super) fn in_words(contract: Contract) -> String {
    format!("{} accepting {}", contract.determinism, contract.accept)
}

/// The first entry, by its id, that is not in both lists alike: as each list has it.
pub(super) fn first_difference<'a, T>(
    zero: &'a [T],
    odd: &'a [T],
    id: impl Fn(&'a T) -> &'a str,
    same: impl Fn(&T, &T) -> bool,
) -> Option<(Option<&'a T>, Option<&'a T>)> {
    let by_id = |list: &'a [T]| list.iter().map(|e| (id(e), e)).collect::<HashMap<_, _>>();
    let (in_zero, in_odd) = (by_id(zero), by_id(odd));
    let of_zero = zero.iter().map(|a| (Some(a), in_odd.get(id(a)).copied()));
    let of_odd = odd.iter().map(|b| (in_zero.get(id(b)).copied(), Some(b)));
    of_zero.chain(of_odd).find(|pair| match pair {
        (Some(a), Some(b)) => !same(a, b),
        _ => true,
    })
}
