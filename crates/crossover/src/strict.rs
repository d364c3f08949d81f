//! The setting `strict`: what lint finds wrong with a policy is an error. Only the group that has
//! been formed is looked at, with the room that its backends have. On which device numbers were
//! measured is not looked at: that is no mistake, and what is shipped was not measured on every one.

use crossover_core::communicator::Communicator;
use crossover_core::contract::Contract;
use crossover_core::registry::Registry;
use crossover_policy::lint::{Options, lint_for_group};
use crossover_policy::{Code, Effective};

use crate::Error;

/// Refuses a policy of which lint has anything to say. `contract` is the engine's, if it states
/// one.
pub(crate) fn refuse_findings(
    policy: &Effective,
    registry: &Registry,
    group: &Communicator,
    contract: Option<Contract>,
) -> Result<(), Error> {
    let profile = group.plan().group();
    let open = group
        .plan()
        .offers()
        .iter()
        .filter_map(|offer| Some((offer.descriptor.id.to_owned(), offer.state.capacity()?)));
    let options = Options { contract, capacities: open.collect(), ..Options::default() };
    let mut findings = lint_for_group(policy, profile.clone(), registry, &options).findings;
    findings.retain(|finding| finding.code != Code::ForeignEvidence);
    if findings.is_empty() { Ok(()) } else { Err(Error::Strict(findings)) }
}
