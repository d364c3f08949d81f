//! What dumps say themselves. Those of one failure are told as one: each group has its dump, and each
//! node.

use std::collections::BTreeSet;
use std::time::Duration;

use crossover_recorder::{Class, Diagnosis, GroupState, Image, Verdict, analyse};

use super::dump::Dump;

/// Groups of one job that fail within this time fail of the same, as where dumps are kept.
const ONE_FAILURE: Duration = Duration::from_secs(60);

/// What was the matter with a job when its dumps were written.
pub(super) struct Failure {
    /// What the dumps say, first what was written first.
    pub(super) diagnosis: Diagnosis,
    /// Their rings, each once.
    pub(super) images: Vec<Image>,
    /// When the first was written, since 1970.
    pub(super) at: Duration,
    /// Of some groups each dump has a part of the ranks only: those of one node.
    pieced: BTreeSet<u64>,
}

/// Takes the dumps that have a verdict, and leaves the others, whose rings have to be judged.
pub(super) fn take(dumps: &mut Vec<Dump>) -> Vec<Failure> {
    let mut told: Vec<Dump> = dumps.extract_if(.., |dump| dump.verdict().is_some()).collect();
    told.sort_by_key(|dump| dump.modified);
    let mut failures: Vec<Failure> = Vec::new();
    for Dump { told, images, at, .. } in told {
        let Some(diagnosis) = told else { continue };
        let same = failures.iter_mut().find(|known| {
            known.diagnosis.job == diagnosis.job && known.at.abs_diff(at) <= ONE_FAILURE
        });
        match same {
            Some(known) => known.join(diagnosis, images),
            None => failures.push(Failure { diagnosis, images, at, pieced: BTreeSet::new() }),
        }
    }
    failures.iter_mut().for_each(Failure::judge_pieces);
    failures.sort_by(|a, b| (&a.diagnosis.job, a.at).cmp(&(&b.diagnosis.job, b.at)));
    failures
}

impl Failure {
    /// A later dump adds what it saw more. Of what an earlier one has seen as well it knows less:
    /// ranks have been freed since.
    fn join(&mut self, later: Diagnosis, images: Vec<Image>) {
        let Diagnosis { verdicts, groups, notes, .. } = later;
        let mut saw_more = false;
        for group in groups {
            saw_more |= self.join_group(group);
        }
        if saw_more {
            self.add(verdicts);
            let known = &mut self.diagnosis.notes;
            notes.into_iter().for_each(|note| {
                if !known.contains(&note) {
                    known.push(note);
                }
            });
        }
        for image in images {
            let of = |image: &Image| (image.about.group, image.about.rank);
            if !self.images.iter().any(|known| of(known) == of(&image)) {
                self.images.push(image);
            }
        }
    }

    /// Did it see ranks that no earlier dump has seen?
    fn join_group(&mut self, later: GroupState) -> bool {
        let known = self.diagnosis.groups.iter_mut().find(|known| known.group == later.group);
        let Some(known) = known else {
            let saw_any = later.ranks.iter().any(|rank| rank.seen);
            self.diagnosis.groups.push(later);
            return saw_any;
        };
        let mut saw_more = false;
        for rank in later.ranks.into_iter().filter(|rank| rank.seen) {
            let unseen = known.ranks.iter_mut().find(|known| known.rank == rank.rank);
            if let Some(unseen) = unseen.filter(|known| !known.seen) {
                *unseen = rank;
                saw_more = true;
            }
        }
        if saw_more {
            self.pieced.insert(known.group);
        }
        saw_more
    }

    fn add(&mut self, verdicts: Vec<Verdict>) {
        let same = |a: &Verdict, b: &Verdict| {
            (a.class, a.group, a.number, &a.ranks) == (b.class, b.group, b.number, &b.ranks)
        };
        for verdict in verdicts {
            if !self.diagnosis.verdicts.iter().any(|known| same(known, &verdict)) {
                self.diagnosis.verdicts.push(verdict);
            }
        }
    }

    /// No node saw the histories of all ranks side by side. What has been recorded stays as it was,
    /// whatever ranks did after the first dump; how they ended does not.
    fn judge_pieces(&mut self) {
        if self.pieced.is_empty() {
            return;
        }
        let judged = analyse(&self.images).into_iter().find(|job| job.job == self.diagnosis.job);
        let Some(Diagnosis { verdicts, notes, .. }) = judged else { return };
        let of_histories = |verdict: &Verdict| {
            verdict.class < Class::CrashedRank && self.pieced.contains(&verdict.group)
        };
        self.add(verdicts.into_iter().filter(of_histories).collect());
        // Whom one node did not see, another may have seen.
        self.diagnosis.notes = notes;
    }
}
