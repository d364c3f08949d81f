//! What a reader must know to believe a table: which group, which policy, which machine, and how
//! time was taken.

use crossover_bootstrap::binding;
use crossover_core::call::Op;
use crossover_core::communicator::{CallError, Communicator};
use crossover_core::facts::{GroupProfile, RankReport};
use crossover_core::policy::Layer;
use rustix::thread::CpuSet;

use super::Args;
use super::beside::Beside;
use super::case::Case;
use crate::failure::Failure;

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
    /// Processors that the ranks may use together: a launcher may have bound each to its share.
    pub(super) processors: Vec<usize>,
    /// Sizes that are not whole elements for every rank: as asked for, and as run.
    pub(super) rounded: Vec<(u64, u64)>,
}

impl About {
    /// Collective.
    pub(super) fn new(
        args: &Args,
        group: &Communicator,
        cases: &[(u64, Case)],
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
            policy: group.plan().policy_digest().to_string(),
            sources,
            determinism: contract.determinism.to_string(),
            accept: contract.accept.to_string(),
            processors: all_processors(args.op, group)?,
            rounded: rounded.filter(|(asked, run)| asked != run).collect(),
        })
    }
}

fn all_processors(under_test: Op, group: &Communicator) -> Result<Vec<usize>, CallError> {
    let mut allowed = vec![0; CpuSet::MAX_CPU];
    binding::allowed().into_iter().for_each(|processor| allowed[processor] = 1);
    Beside::new(group, under_test).max(&mut allowed)?;
    Ok((0..allowed.len()).filter(|processor| allowed[*processor] == 1).collect())
}
