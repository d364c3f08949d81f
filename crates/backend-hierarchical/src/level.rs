//! A group within the group: the ranks of a node, or those of one number on all nodes.

use std::sync::Arc;

use crossover_core::agreement::StepError;
use crossover_core::backend::{DeviceWait, EnqueueError, Watch};
use crossover_core::bootstrap::{Bootstrap, ranks_in_words};
use crossover_core::call::{CallBuffers, CallSig};
use crossover_core::communicator::{CallError, Communicator};
use crossover_core::contract::Contract;
use crossover_core::facts::RankReport;
use crossover_core::policy::{
    Basis, ByteRange, Candidate, Layer, Match, Origin, ParamValue, Policy, Rule,
};
use crossover_core::registry::{Registration, Registry};
use crossover_core::settings::{BackendSettings, GroupSettings};

use crate::layout::told;

/// A communicator of some of the group's ranks.
#[derive(Clone)]
pub(crate) struct Level {
    pub(crate) comm: Arc<Communicator>,
    /// Of the group, in the order that they have here.
    ranks: Arc<[u32]>,
    /// For messages.
    place: &'static str,
}

/// What a level is formed of.
pub(crate) struct Plan {
    pub(crate) place: &'static str,
    pub(crate) backend: Registration,
    /// Its algorithms, with what is set of them.
    pub(crate) chain: Vec<(&'static str, Vec<(String, ParamValue)>)>,
}

/// What a rank comes with.
pub(crate) struct Own {
    pub(crate) channel: Box<dyn Bootstrap>,
    pub(crate) report: RankReport,
    pub(crate) settings: BackendSettings,
    /// Of the group, those of this level.
    pub(crate) ranks: Vec<u32>,
}

impl Level {
    /// Forms it. Collective, among its ranks.
    pub(crate) fn form(plan: Plan, own: Own) -> Result<Level, StepError> {
        let Plan { place, backend, chain } = plan;
        let Own { channel, report, settings, ranks } = own;
        let registry = Registry::empty().with(backend).map_err(StepError::new)?;
        let policy = forcing(backend.descriptor.id, chain);
        let tag = format!("hierarchical, {place}");
        let settings = GroupSettings { tag, backends: settings, ..GroupSettings::default() };
        let channel: Arc<dyn Bootstrap> = channel.into();
        let formed = Communicator::form(&*channel, &registry, &policy, report, &settings);
        let comm = formed.map_err(|e| {
            StepError(format!("of {}, numbered from 0: {e}", ranks_in_words(&ranks)))
        })?;
        let comm = Arc::new(comm.with_channel(channel));
        Ok(Level { comm, ranks: ranks.into(), place })
    }

    /// How many ranks it has.
    pub(crate) fn world(&self) -> usize {
        self.ranks.len()
    }

    /// The number in the whole group of the rank that has this one here.
    pub(crate) fn whole(&self, nth: usize) -> u32 {
        self.ranks[nth]
    }

    /// This rank's number here.
    pub(crate) fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// What a watchdog can look at of it, in the whole group's numbers.
    pub(crate) fn watch(&self) -> Option<Arc<dyn Watch>> {
        let of_level = Arc::clone(self.comm.watches().first()?);
        Some(Arc::new(LevelWatch { of_level, ranks: Arc::clone(&self.ranks) }))
    }

    /// Makes one of the calls of the group's call `seq`.
    ///
    /// # Safety
    ///
    /// As for [`Communicator::run`].
    pub(crate) unsafe fn run(
        &self,
        call: &CallSig<'_>,
        buffers: &CallBuffers,
        seq: u64,
    ) -> Result<(), EnqueueError> {
        // SAFETY: the caller's promise.
        let ran = unsafe { self.comm.run(call, buffers) };
        ran.map_err(|e| self.error(e, seq))
    }

    /// A call's error, as one of the group's call `seq`.
    pub(crate) fn error(&self, error: CallError, seq: u64) -> EnqueueError {
        match error {
            CallError::Failed(error)
            | CallError::Poisoned(error)
            | CallError::Unprepared { error, .. } => told(error, self.place, &self.ranks, seq),
            // What the group was asked has been judged by the same rules: a fault of this crate.
            other => {
                let (step, text) = (self.place.to_owned(), other.to_string());
                EnqueueError::Vendor { step, seq, call: "a call", text }
            }
        }
    }

    /// The contract under which its calls are decided in advance.
    pub(crate) fn contract(&self) -> Contract {
        self.comm.plan().contract()
    }
}

/// What a level's ranks wait for, in the whole group's numbers.
struct LevelWatch {
    of_level: Arc<dyn Watch>,
    ranks: Arc<[u32]>,
}

impl Watch for LevelWatch {
    fn waits(&self) -> Option<DeviceWait> {
        let wait = self.of_level.waits()?;
        // What memory tells may be anything.
        let awaited = *self.ranks.get(wait.awaited as usize)?;
        Some(DeviceWait { awaited, ..wait })
    }
}

/// A policy that insists on these algorithms of one backend.
fn forcing(id: &str, chain: Vec<(&'static str, Vec<(String, ParamValue)>)>) -> Policy {
    let candidate = |(algorithm, params): (&str, _)| Candidate {
        backend: id.to_owned(),
        algorithm: Some(algorithm.to_owned()),
        bytes: ByteRange::ANY,
        basis: Basis::Input,
        optional: false,
        params,
    };
    let rule = Rule {
        id: "level".to_owned(),
        layer: Layer::Program,
        origin: Origin { file: "backend `hierarchical`".to_owned(), line: 0 },
        priority: 0,
        last: true,
        forced: true,
        when: Match::default(),
        chain: chain.into_iter().map(candidate).collect(),
        evidence: None,
    };
    Policy::new(Contract::DEFAULT, vec![rule])
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Awaits(u32);

    impl Watch for Awaits {
        fn waits(&self) -> Option<DeviceWait> {
            Some(DeviceWait { call: 7, awaited: self.0, what: "data", moment: 3 })
        }
    }

    #[test]
    fn who_is_awaited_on_a_node_is_told_as_the_group_counts() {
        let told = |awaited| {
            let ranks = Arc::from([8, 9, 12]);
            LevelWatch { of_level: Arc::new(Awaits(awaited)), ranks }.waits()
        };
        let of = |awaited| DeviceWait { call: 7, awaited, what: "data", moment: 3 };
        assert_eq!(told(2), Some(of(12)));
        assert_eq!(told(3), None);
    }
}
