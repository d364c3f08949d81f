//! What a reader must know to believe a table: which group, which policy, which machine, and how
//! time was taken.

use crossover_bootstrap::binding;
use crossover_core::call::Mode;
use crossover_core::facts::{GroupProfile, RankReport};
use crossover_core::policy::Layer;
use rustix::thread::CpuSet;

use super::beside::Beside;
use super::case::Case;
use super::contender::Contenders;
use super::floors::Floors;
use super::place::Place;
use super::{Args, mps};
use crate::failure::Failure;

/// How time is taken, in one sentence.
const ON_HOST: &str = "time = p50 = median over iterations of the slowest rank's time for one call, \
                       each after a barrier; p99 likewise; p50 and p99 are out of place";
const EAGER: &str = "time = p50 = median over iterations of the slowest rank's time for a call, of \
                     a batch in its stream between two events, after a barrier and a few calls \
                     more; p99 likewise; host = median of the time that a call's caller waits; \
                     p50, p99 and host are out of place";
const GRAPH: &str = "time = p50 = median over iterations of the slowest rank's time for a call, of \
                     a graph of calls that is replayed between two events, after a barrier and \
                     another replay; p99 likewise; p50 and p99 are out of place";

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
    /// Where the data is.
    pub(super) place: Place,
    /// An MPS daemon is where this rank looks for one.
    pub(super) has_daemon: bool,
    /// What the devices can, where it was measured; on rank 0.
    pub(super) floors: Option<Floors>,
    /// Sizes that are not whole elements for every rank: as asked for, and as run.
    pub(super) rounded: Vec<(u64, u64)>,
}

impl About {
    /// Collective.
    pub(super) fn new(
        args: &Args,
        place: &Place,
        contenders: &Contenders,
        cases: &[(u64, Case)],
        floors: Option<Floors>,
    ) -> Result<About, Failure> {
        let group = &contenders.policy;
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
            processors: all_processors(&contenders.beside(args.op))?,
            place: place.clone(),
            has_daemon: place.wants_daemon() && mps::is_there(),
            floors,
            rounded: rounded.filter(|(asked, run)| asked != run).collect(),
        })
    }

    /// How time is taken, in one sentence.
    pub(super) fn method(&self, mode: Mode) -> &'static str {
        match (&self.place, mode) {
            (Place::Host, _) => ON_HOST,
            (Place::On { .. }, Mode::Eager) => EAGER,
            (Place::On { .. }, Mode::Graph) => GRAPH,
        }
    }

    /// How many devices the ranks are on.
    pub(super) fn devices(&self) -> usize {
        let mut units: Vec<&str> = self.reports.iter().map(|report| &*report.unit).collect();
        units.sort_unstable();
        units.dedup();
        units.len()
    }
}

fn all_processors(beside: &Beside<'_>) -> Result<Vec<usize>, Failure> {
    let mut allowed = vec![0; CpuSet::MAX_CPU];
    binding::allowed().into_iter().for_each(|processor| allowed[processor] = 1);
    beside.max(&mut allowed)?;
    Ok((0..allowed.len()).filter(|processor| allowed[*processor] == 1).collect())
}
