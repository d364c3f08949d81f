//! What dumps say themselves. Those of one failure are told as one: each group has its dump, and
//! each node.

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
    attempt: u32,
    /// Of some groups each dump has a part of the ranks only: those of one node.
    pieced: BTreeSet<u64>,
}

/// Takes the dumps that have a verdict, and leaves the others, whose rings have to be judged.
pub(super) fn take(dumps: &mut Vec<Dump>) -> Vec<Failure> {
    let mut told: Vec<Dump> = dumps.extract_if(.., |dump| dump.verdict().is_some()).collect();
    told.sort_by_key(|dump| dump.modified);
    let mut failures: Vec<Failure> = Vec::new();
    for Dump { told, images, attempt, at, .. } in told {
        let Some(diagnosis) = told else { continue };
        let same = failures.iter_mut().find(|known| {
            (&known.diagnosis.job, known.attempt) == (&diagnosis.job, attempt)
                && known.at.abs_diff(at) <= ONE_FAILURE
        });
        match same {
            Some(known) => known.join(diagnosis, images),
            None => {
                failures.push(Failure { diagnosis, images, at, attempt, pieced: BTreeSet::new() })
            }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use serde::Deserialize as _;

    /// Of a group of two ranks.
    fn dump(attempt: u32, seconds: u64, group: &str, seen: [bool; 2], sentence: &str) -> Dump {
        let ranks = [0, 1].map(|rank| {
            json!({
                "rank": rank, "member": "h:1", "seen": seen[rank],
                "issued": 0, "finished": 0, "step": 0,
            })
        });
        let verdict = json!({
            "class": "ended", "fields": [], "tag": "tp", "group": group,
            "ranks": seen.map(u32::from), "sentence": sentence, "evidence": [], "advice": [],
        });
        let told = json!({
            "job": "j", "notes": [], "verdicts": [verdict],
            "groups": [{ "tag": "tp", "group": group, "world": 2, "ranks": ranks }],
        });
        let (at, told) = (Duration::from_secs(seconds), Diagnosis::deserialize(&told).ok());
        assert!(told.is_some(), "it is one");
        Dump { told, images: Vec::new(), notes: Vec::new(), attempt, at, modified: at }
    }

    #[track_caller]
    fn check(mut dumps: Vec<Dump>, expected: &[&[&str]]) {
        let failures = take(&mut dumps);
        let said = |failure: &Failure| -> Vec<String> {
            failure.diagnosis.verdicts.iter().map(|verdict| verdict.sentence.clone()).collect()
        };
        assert_eq!(failures.iter().map(said).collect::<Vec<_>>(), expected);
        assert!(dumps.is_empty());
    }

    #[test]
    fn attempts_and_minutes_are_failures_of_their_own() {
        let both = [true, true];
        let dumps = [(0, 100, "a"), (0, 160, "b"), (1, 101, "c"), (0, 161, "d")];
        let dumps = dumps.map(|(attempt, at, group)| dump(attempt, at, group, both, group));
        check(dumps.into(), &[&["a", "b"], &["c"], &["d"]]);
    }

    #[test]
    fn a_later_dump_is_heard_of_what_no_earlier_one_saw() {
        let of = |at, seen, said| dump(0, at, "a", seen, said);
        let (one, other, both) = ([true, false], [false, true], [true, true]);
        check(vec![of(2, both, "second"), of(1, both, "first")], &[&["first"]]);
        check(vec![of(2, other, "second"), of(1, one, "first")], &[&["first", "second"]]);
        check(vec![of(2, one, "second"), of(1, both, "first")], &[&["first"]]);
    }
}
