//! Which groups are measured: the one that the policy makes, or one for each target.

use crossover_core::bootstrap::Bootstrap;
use crossover_core::call::Op;
use crossover_core::communicator::Communicator;

use super::Args;
use super::beside::Beside;
use super::case::Case;
use super::place::Place;
use crate::failure::Failure;
use crate::group::Formation;

/// A group in which one target is forced.
pub(super) struct Contender {
    pub(super) group: Communicator,
    pub(super) target: String,
}

impl Contender {
    pub(super) fn takes(&self, case: &Case) -> bool {
        let plan = self.group.plan();
        plan.select(&case.signature(plan.contract())).is_some()
    }
}

/// All groups that take part.
pub(super) struct Contenders {
    /// What the policy makes of it, with what `--use` forces; it is measured where no other is.
    pub(super) policy: Communicator,
    /// For `--use all`, one for each target that is open to the ranks and knows the op.
    pub(super) targets: Vec<Contender>,
    way: Way,
}

/// By what ranks exchange what perf itself wants to know.
enum Way {
    /// Where data is on devices of several nodes.
    ControlPlane(Box<dyn Bootstrap>),
    /// Where data is on devices of one node: the ranks' group on host memory.
    Host(Box<Communicator>),
    /// The groups under test, where data is in host memory.
    UnderTest,
}

impl Contenders {
    /// Forms them all. Collective.
    pub(super) fn form(
        args: &Args,
        formation: &Formation,
        place: &Place,
    ) -> Result<Contenders, Failure> {
        let policy = formation.form(args.forced())?;
        if let Some(target) = args.forced()
            && policy.world() == 1
        {
            return Err(Failure::ineligible(format!(
                "--use {target} cannot be had: a group of one rank copies; ask for -n 2 or more"
            )));
        }
        let targets =
            if args.target == "all" { open_targets(&policy, args.op) } else { Vec::new() };
        let form = |target: String| {
            let group = formation.form(Some(&target))?;
            Ok(Contender { group, target })
        };
        let targets = targets.into_iter().map(form).collect::<Result<_, Failure>>()?;
        let way = match place {
            Place::Host => Way::UnderTest,
            Place::On { .. } if policy.facts().profile().nodes > 1 => {
                Way::ControlPlane(formation.control_plane()?)
            }
            Place::On { .. } => Way::Host(Box::new(formation.form_on_host()?)),
        };
        Ok(Contenders { policy, targets, way })
    }

    /// Exchanges beside calls of this op.
    pub(super) fn beside(&self, op: Op) -> Beside<'_> {
        match &self.way {
            Way::ControlPlane(boot) => Beside::ControlPlane(&**boot),
            Way::Host(host) => Beside::new(host, op),
            Way::UnderTest => Beside::new(&self.policy, op),
        }
    }

    /// Says goodbye to the peers. Collective.
    pub(super) fn close(&self) -> Result<(), Failure> {
        for target in &self.targets {
            target.group.close()?;
        }
        self.policy.close()?;
        match &self.way {
            Way::Host(host) => Ok(host.close()?),
            // Nobody waits for a rank that has had all results.
            Way::ControlPlane(_) | Way::UnderTest => Ok(()),
        }
    }
}

fn open_targets(group: &Communicator, op: Op) -> Vec<String> {
    let offers = group.plan().offers().iter();
    let algorithms = offers.flat_map(|offer| {
        let all = offer.descriptor.algorithms.iter().enumerate();
        let open = all.filter(|(nth, _)| offer.state.room(*nth).is_ok());
        open.map(|(_, algorithm)| (offer.descriptor, algorithm))
    });
    algorithms
        .filter(|(_, algorithm)| algorithm.eligibility.ops.contains(op))
        .map(|(descriptor, algorithm)| descriptor.target(algorithm))
        .collect()
}
