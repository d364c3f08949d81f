//! A group on host memory, for tests of the recorder inside and outside of it and for its bench.

use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::Communicator;
use crossover_core::contract::Contract;
use crossover_core::facts::{Caps, HOST_ARCH, RankReport, Topology};
use crossover_core::policy::{Basis, ByteRange, Candidate, Layer, Match, Origin, Policy, Rule};
use crossover_core::registry::Registry;
use crossover_core::settings::GroupSettings;

/// Forms it of all ranks of the channel, with these backends, one of which may serve. A group of one needs none.
pub(crate) fn form(channel: &dyn Bootstrap, registry: &Registry) -> Communicator {
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
    let rules = registry.entries().iter().map(|entry| rule(entry.descriptor.id)).collect();
    let (policy, settings) = (Policy::new(Contract::DEFAULT, rules), GroupSettings::default());
    let formed = Communicator::form(channel, registry, &policy, report, &settings);
    formed.expect("all ranks are here")
}

/// Without one that names it no backend is opened, and without a backend there is no group.
fn rule(backend: &str) -> Rule {
    let candidate = Candidate {
        backend: backend.to_owned(),
        algorithm: None,
        bytes: ByteRange::ANY,
        basis: Basis::Input,
        optional: false,
        params: Vec::new(),
    };
    Rule {
        id: backend.to_owned(),
        layer: Layer::Program,
        origin: Origin::default(),
        priority: 0,
        last: false,
        forced: false,
        when: Match::default(),
        chain: vec![candidate],
        evidence: None,
    }
}
