//! What a reader must know to believe a table: which group, which policy, which machine, and how
//! time was taken.

use crossover_core::communicator::Communicator;
use crossover_core::facts::{GroupProfile, RankReport};
use crossover_core::policy::Layer;

use super::Args;
use super::case::Case;
use crate::failure::Failure;
use crate::group::Formation;

/// How time is taken, in one sentence.
pub(super) const METHOD: &str = "time = p50 = median over iterations of the slowest rank's time \
                                 for one call, each after a barrier; p99 likewise; p50 and p99 are \
                                 out of place";

pub(super) struct About {
    pub(super) profile: GroupProfile,
    pub(super) reports: Vec<RankReport>,
    pub(super) policy: String,
    /// Layers and files, weakest first.
    pub(super) sources: Vec<(Layer, String)>,
    pub(super) determinism: String,
    pub(super) accept: String,
    /// Processors that this process might run on before it formed a group: a backend may pin it.
    pub(super) cores: usize,
    /// Sizes that are not whole elements for every rank: as asked for, and as run.
    pub(super) rounded: Vec<(u64, u64)>,
}

impl About {
    pub(super) fn new(
        args: &Args,
        formation: &Formation,
        group: &Communicator,
        cases: &[(u64, Case)],
        cores: usize,
    ) -> Result<About, Failure> {
        let contract = group.plan().contract();
        let mut sources: Vec<(Layer, String)> = Vec::new();
        for rule in group.plan().rules().iter().rev() {
            let source = (rule.layer, rule.origin.file.clone());
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let rounded = cases.iter().map(|(asked, case)| (*asked, case.size()));
        Ok(About {
            profile: group.facts().profile().clone(),
            reports: group.facts().reports().to_vec(),
            policy: formation.policy(args.forced())?.digest().to_string(),
            sources,
            determinism: contract.determinism.to_string(),
            accept: contract.accept.to_string(),
            cores,
            rounded: rounded.filter(|(asked, run)| asked != run).collect(),
        })
    }
}
