//! A group on host memory, for tests of the recorder inside and outside of it and for its bench.

use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::Communicator;
use crossover_core::contract::Contract;
use crossover_core::facts::{Caps, HOST_ARCH, RankReport, Topology};
use crossover_core::policy::{Policy, Rule};
use crossover_core::registry::Registry;
use crossover_core::settings::GroupSettings;

/// Forms it of all ranks of the channel, with these backends and rules. A group of one needs none.
pub(crate) fn form(channel: &dyn Bootstrap, registry: &Registry, rules: Vec<Rule>) -> Communicator {
    let report = RankReport {
        label: format!("test:{}", channel.rank()),
        node: "this node".to_owned(),
        arch: HOST_ARCH.to_owned(),
        device: "a processor".to_owned(),
        unit: String::new(),
        topology: Topology::Host,
        caps: Caps::NONE,
        caches: Default::default(),
    };
    let (policy, settings) = (Policy::new(Contract::DEFAULT, rules), GroupSettings::default());
    let formed = Communicator::form(channel, registry, &policy, report, &settings);
    formed.expect("all ranks are here")
}
